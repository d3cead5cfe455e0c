"""Checks that a server has the tokens of a file."""

from __future__ import annotations

from specllama import _core
from specllama.errors import ArgumentError, ModelError
from specllama.remote.sglang.generate import Generate

_N_WORDS = 32
_SHORTEST = 3


def check_vocabulary(generate: Generate, url: str, tokenizer: _core.Tokenizer, path: str) -> int:
    """Compare some words, spread over the vocabulary, if the server sends its texts. Return how
    many of the file's token ids the server has: both may have unused ids at the end. Raises
    ModelError if the words differ, and the errors of `Generate.limit` and `Generate.texts`."""
    try:
        n_known = generate.limit(tokenizer.n_vocab)
        words = _words(tokenizer, n_known)
        texts = generate.texts(list(words))
    except ArgumentError as error:
        raise ModelError(f"{url} refuses tokens of {path}: {error}") from None
    for (token, word), text in zip(words.items(), texts, strict=True):
        # Some tokenizers drop the space before a single word.
        if text is not None and text.strip() != word:
            raise ModelError(
                f"Token {token} is {text.strip()!r} at {url}, but {word!r} in {path}; use a GGUF "
                "with the vocabulary of the server's model."
            )
    return n_known


def _words(tokenizer: _core.Tokenizer, n_known: int) -> dict[int, str]:
    """Return words by token, without the spaces around them."""
    found: dict[int, str] = {}
    step = max(n_known // _N_WORDS, 1)
    for first in range(0, n_known, step):
        for token in range(first, min(first + step, n_known)):
            word = tokenizer.detokenize([token], special=False).strip()
            if len(word) >= _SHORTEST and word.isascii() and word.isalpha():
                found[token] = word
                break
    return found or {0: tokenizer.detokenize([0], special=False).strip()}
