"""Texts with many special tokens are split between them, and llama.cpp tokenizes the parts: the
tokens are those of the whole text."""

from __future__ import annotations

import random
from pathlib import Path

import llama_cpp
import pytest
from real_models import real_model
from session_options import Open
from specllama import SpecSession

# Blanks, tags and chat template markers, which are special in some vocabularies.
PIECES = [
    *("<|end|>", "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "<unused7>"),
    *("<bos>", "<b>", "</p>", "<", "|", "def f(x):", "x = 1", "é", "日本", "\t"),
    *("\n", "\n\n", "\n" * 5, " ", "  ", " " * 4, " " * 24),
]


def texts() -> list[str]:
    rng = random.Random(1)
    drawn = ["".join(rng.choices(PIECES, k=2000)) for _ in range(8)]
    return [*drawn, "    x = 1\n" * 1500, "<|end|>" * 1000 + " a", "<b><|im_end|>" * 1000]


def compare(session: SpecSession, model: Path) -> None:
    llama = llama_cpp.Llama(str(model), vocab_only=True, verbose=False)
    for text in texts():
        for plain in (False, True):
            expected = llama.tokenize(text.encode(), add_bos=True, special=not plain)
            assert session.tokenize(text, parse_special=not plain) == expected
        expected = llama.tokenize(text.encode(), add_bos=False, special=True)
        assert session.tokenize(text, add_special=False) == expected
    llama.close()


def test_texts_with_special_tokens_are_tokenized_as_by_llama_cpp(
    open_session: Open, bundled_model: Path
) -> None:
    compare(open_session(), bundled_model)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2", "qwen-0.5b", "gemma"])
def test_texts_with_special_tokens_of_real_models_are_tokenized_as_by_llama_cpp(name: str) -> None:
    model = real_model(name)
    with SpecSession(model, None, n_ctx=64, n_threads=1) as session:
        compare(session, model)
