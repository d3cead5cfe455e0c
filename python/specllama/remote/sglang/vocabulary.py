"""Checks whether a server's tokens are those of a file."""

from __future__ import annotations

from specllama import _core
from specllama.errors import ArgumentError, ModelError
from specllama.remote.sglang.generate import Generate

_N_WORDS = 32
_SHORTEST = 3


def check_vocabulary(generate: Generate, url: str, tokenizer: _core.Tokenizer, path: str) -> None:
    """Compare some words, spread over the vocabulary, if the server tells its own ones. Raises
    ModelError if they differ, and what `Generate.texts` raises."""
    words = _words(tokenizer)
    try:
        texts = generate.texts(list(words))
    except ArgumentError as error:
        raise ModelError(f"{url} refuses tokens of {path}: {error}") from None
    for (token, word), text in zip(words.items(), texts, strict=True):
        # Some tokenizers drop the space before a word that stands alone.
        if text is not None and text.strip() != word:
            raise ModelError(
                f"Token {token} is {text.strip()!r} at {url} and {word!r} in {path}; take a GGUF "
                "that has the vocabulary of the model there."
            )


def _words(tokenizer: _core.Tokenizer) -> dict[int, str]:
    """Return words by token, without the spaces around them."""
    found: dict[int, str] = {}
    step = max(tokenizer.n_vocab // _N_WORDS, 1)
    for first in range(0, tokenizer.n_vocab, step):
        for token in range(first, min(first + step, tokenizer.n_vocab)):
            word = tokenizer.detokenize([token], special=False).strip()
            if len(word) >= _SHORTEST and word.isascii() and word.isalpha():
                found[token] = word
                break
    return found or {0: tokenizer.detokenize([0], special=False).strip()}
