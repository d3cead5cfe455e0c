"""Files with tokenizers that cannot tokenize every text: refused when opened, or an error later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from random_model import N_VOCAB, write_dense
from refusals import refusal
from rewriting import rewrite
from specllama import ArgumentError, SpecSession


def retokenized(folder: Path, tokens: list[str], **fields: Any) -> Path:
    """Write a small model whose first tokens are these."""
    rest = [f"other {i}" for i in range(N_VOCAB - len(tokens))]
    keys = {f"tokenizer.ggml.{name}": value for name, value in fields.items()}
    changed = {
        "tokenizer.ggml.tokens": [*tokens, *rest],
        "tokenizer.ggml.token_type": [1] * N_VOCAB,
        **keys,
    }
    rewrite(write_dense(folder / "whole.gguf"), path := folder / "model.gguf", changed, {})
    return path


@pytest.mark.parametrize(
    "tokens",
    [
        ["a", "b"],
        [f"\\x{i:02x}" for i in range(N_VOCAB)],  # from 0x80 on, only first bytes of characters
        ["\\xc5\\xbc", *(f"\\x{i:02x}" for i in range(1, 90))],
    ],
)
def test_rwkv_tokenizer_without_all_bytes_is_refused(tmp_path: Path, tokens: list[str]) -> None:
    path = retokenized(tmp_path, tokens, model="rwkv")
    assert "its tokenizer, rwkv, has no token for the single byte" in refusal(path)


def test_t5_tokenizer_without_an_unknown_token_is_refused(tmp_path: Path) -> None:
    path = retokenized(tmp_path, ["a"], model="t5", unknown_token_id=2**32 - 1)
    assert "its tokenizer, t5, has no unknown token" in refusal(path)


def test_plamo_tokenizer_with_very_long_tokens_is_refused(tmp_path: Path) -> None:
    """llama.cpp sorts all suffixes of each token."""
    path = retokenized(tmp_path, ["a", "ab" * 15_000], model="plamo2")
    assert "its first 2 tokens are too long for its tokenizer, plamo2" in refusal(path)


def test_a_byte_token_with_another_text_is_refused(tmp_path: Path) -> None:
    path = retokenized(tmp_path, ["a", "b"], token_type=[6] * N_VOCAB)
    assert 'its token 0 is a byte by its type, but its text is "a"' in refusal(path)


def test_model_errors_do_not_quote_the_standard_library(tmp_path: Path) -> None:
    """llama.cpp requires a token </s> in a model called Phi-3."""
    whole = retokenized(tmp_path, ["<unk>", "<s>", "a"])
    rewrite(whole, path := tmp_path / "phi.gguf", {"general.name": "phi-3"}, {})
    assert "as a model: llama.cpp cannot load it; the file is damaged." in refusal(path)


@pytest.mark.parametrize("text", ["\u017c", "a\u20acb", "\0", "\N{GRINNING FACE}"])
def test_a_text_without_tokens_in_the_vocabulary_is_refused(tmp_path: Path, text: str) -> None:
    path = retokenized(tmp_path, ["<unk>", "<s>", "</s>", "a"])
    with (
        SpecSession(path, n_gpu_layers=0, n_threads=1) as session,
        pytest.raises(ArgumentError, match="has no tokens for some of this text"),
    ):
        session.tokenize(text)
