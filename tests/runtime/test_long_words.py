"""Words of many thousand letters, which some tokenizers split recursively."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from specllama import ArgumentError, SpecSession
from specllama.session import BUNDLED_DRAFT


@pytest.fixture(scope="module")
def recursing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that splits texts like BLOOM, by std::regex."""
    content = BUNDLED_DRAFT.read_bytes()
    key = content.index(b"tokenizer.ggml.pre")
    value = content.index(b"gpt-2", key)
    assert value < key + 40
    path = tmp_path_factory.mktemp("models") / "bloom.gguf"
    path.write_bytes(content[:value] + b"bloom" + content[value + 5 :])
    return path


@pytest.mark.parametrize("n", [2047, 2049, 60_000, 600_000])
def test_long_words_are_tokenized(recursing: Path, n: int) -> None:
    with SpecSession(recursing, draft=None, n_threads=1) as session:
        assert session.detokenize(session.tokenize("ab" * n, add_special=False)) == "ab" * n


def test_a_word_longer_than_the_context_is_refused(recursing: Path) -> None:
    with SpecSession(recursing, draft=None, n_threads=1) as session:
        with pytest.raises(ArgumentError, match="leaves no room in a context"):
            session.generate("a" * 100_000)
        assert session.generate("import", max_tokens=2).stats.generated_tokens == 2


def test_a_text_of_too_many_characters_without_a_token_is_refused(
    scripted: Callable[..., Path],
) -> None:
    """llama.cpp's SentencePiece takes time quadratic in their number: minutes for a MiB."""
    model = scripted(["a"], any_text=True)
    with SpecSession(model, None, n_ctx=256, n_threads=1, n_gpu_layers=0) as session:
        assert len(session.tokenize("a" * 500_000, add_special=False)) == 500_000
        assert len(session.tokenize("b" * 20_000, add_special=False)) == 20_000
        with pytest.raises(ArgumentError, match="500000 of its characters are not tokens of this"):
            session.tokenize("b" * 500_000)
