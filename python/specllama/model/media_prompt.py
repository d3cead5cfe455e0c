"""A prompt with images or sounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specllama import _check, _core


class MediaPrompt(list[int]):
    """The token ids of a prompt with images or sounds. Each image or sound has negative ids, one
    for each of its positions; equal ids mean equal content. `SpecSession.render_chat` returns it,
    and all methods with a prompt accept it.

    Attributes:
        parts: The token ids and media from which it was made.
        core: The same prompt in the form the core takes.
    """

    def __init__(self, core: _core.MediaPrompt, parts: Sequence[list[int] | _core.Media]) -> None:
        super().__init__(core.tokens.tolist())
        self.core = core
        self.parts = parts


def without_media(tokens: Iterable[int]) -> Iterable[int]:
    """Return the token ids of a prompt without those of images and sounds."""
    return [one for one in tokens if one >= 0] if isinstance(tokens, MediaPrompt) else tokens


def n_rows(prompt: _check.Tokens) -> int:
    """Return how many tokens of the context a prompt takes. An image may take more tokens than it
    has positions."""
    return prompt.core.n_rows if isinstance(prompt, MediaPrompt) else len(prompt)
