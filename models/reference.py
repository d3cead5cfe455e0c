"""Write the results that tests expect from llama.cpp: `python models/reference.py`.

Runs the bundled Q8_0 files, dequantised to float32, in this folder's PyTorch network with its
tokenizer, and writes tests/data/reference.json:

    texts     strings and their token ids, without BOS
    prompt    token ids, BOS first
    columns   the tokens with stored logits
    models    for target and draft: at every position of the prompt the most likely token
              (`best`, positions) and the logits of `columns` (`logits`, positions x columns)
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from corpus import END
from network import load

HERE = Path(__file__).parent
REFERENCE = HERE.parent / "tests" / "data" / "reference.json"

PROMPT = '''import os
import sys


class Stack:
    """A list with push, pop and a limit."""

    def __init__(self, items=(), limit=100):
        self.items = list(items)
        self.limit = limit

    def push(self, item):'''

TEXTS = [
    PROMPT,
    "x  =\t0xFF_FF # 12345678.9e-10\r\n\n\n    y",
    "it's don't we'll I'M",
    "naïve café Ελληνικά 你好 🙂 \u200b\u00a0",
    " leading and trailing ",
]
"""Difficult cases for a pre-tokenizer: indentation, digits, contractions, other scripts, spaces."""

COLUMN_STEP = 512
"""Store the logits of every 512th token: eight numbers per position are enough to detect a wrong
network."""


@torch.no_grad()
def main() -> None:
    models = {}
    for role in ("target", "draft"):
        network, tokenizer = load(HERE / f"{role}-q8_0.gguf")
        prompt = [tokenizer.token_to_id(END), *tokenizer.encode(PROMPT).ids]
        logits = network(torch.tensor([prompt]))[0]
        models[role] = {
            "best": logits.argmax(-1).tolist(),
            "logits": [[round(x, 4) for x in row] for row in logits[:, ::COLUMN_STEP].tolist()],
        }
    reference = {
        "texts": [{"text": text, "tokens": tokenizer.encode(text).ids} for text in TEXTS],
        "prompt": prompt,
        "columns": list(range(0, tokenizer.get_vocab_size(), COLUMN_STEP)),
        "models": models,
    }
    REFERENCE.write_text(json.dumps(reference, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
