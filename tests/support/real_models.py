"""Published models that this machine may have, and facts about them for the tests."""

from __future__ import annotations

import hashlib
import math
import os
from functools import cache
from pathlib import Path

import pytest
from near_ties import rounding
from prompts import MODULE
from session_options import Open
from specllama import SpecSession

FOLDER = Path(
    os.environ.get("SPECLLAMA_REAL_MODELS") or "~/.cache/specllama-real-models"
).expanduser()

FILES = {
    "smollm2": (
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "qwen-0.5b": (
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen-1.5b": (
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "gemma": (
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}
"""The file in `FOLDER` and its SHA-256, by a short name."""

CHATTY = ["smollm2", "qwen-0.5b", "qwen-1.5b"]
"""Models with a chat template."""

MODELS = [*CHATTY, "gemma"]

ENDS = {"smollm2": "<|im_end|><|endoftext|>", "gemma": "<eos><end_of_turn>"}
"""The tokens that end a text (others: those of Qwen)."""

EDIT: list[dict[str, str]] = [
    {"role": "system", "content": "You are a careful programmer. Answer with code only."},
    {"role": "user", "content": f"Repeat this module word by word:\n\n```python\n{MODULE}```"},
]
"""Asks for a copy of a module."""


def real_model(name: str) -> Path:
    """Return the file, or skip the test and say why."""
    path, reason = _found(name)
    if reason:
        pytest.skip(reason)
    return path


@cache
def _found(name: str) -> tuple[Path, str]:
    file, expected = FILES[name]
    path = FOLDER / file
    if not path.is_file():
        return path, f"there is no {path} (SPECLLAMA_REAL_MODELS names another folder)"
    sha256 = hashlib.sha256()
    with path.open("rb") as content:
        while part := content.read(1 << 20):
            sha256.update(part)
    found = sha256.hexdigest()
    if found != expected:
        return path, f"{path} is another file than these tests know: its SHA-256 is {found}"
    return path, ""


def end_tokens(name: str) -> str:
    """Return the text of the tokens that end a generation."""
    return ENDS.get(name, "<|im_end|><|endoftext|>")


def copying_prompt(session: SpecSession, name: str) -> list[int]:
    """Return a prompt with much to copy."""
    if name == "gemma":
        return session.tokenize(f"{MODULE}\n\nThe same again:\n\n{MODULE[:90]}")
    return session.render_chat(EDIT)


def forget(session: SpecSession) -> None:
    """Empty the memory: parts of a prompt that were decoded in another batch have another
    rounding."""
    session.generate([5, 6], max_tokens=1)


def endless(session: SpecSession, name: str) -> dict[int, float]:
    """Return biases that forbid the end, because an ended run has no further candidates."""
    tokens = session.tokenize(end_tokens(name), add_special=False)
    assert len(tokens) == 2
    return dict.fromkeys(tokens, -math.inf)


def near(open_real: Open, name: str) -> tuple[float, float]:
    """Return within how many nats rounding may decide between two tokens: greedily, and at a
    temperature, where noise may make unlikely tokens tie. It is as much as llama.cpp alone may move
    both of them here."""
    session = open_real(name)
    prompt = copying_prompt(session, name)
    text = session.generate(prompt, max_tokens=48, logit_bias=endless(session, name))
    likeliest, likely = rounding(real_model(name), tuple(prompt), tuple(text.tokens))
    return max(0.05, 2 * likeliest), max(0.05, 2 * likely)
