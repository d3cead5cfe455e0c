"""Texts that replace the media of a conversation until its prompt is tokenized."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from specllama.errors import ArgumentError

MARKER = "<__media__>"
"""The text for a medium in prompts shown to users, as in llama.cpp."""

_LONGEST = 80
"""More characters than a placeholder has."""

T = TypeVar("T")


class Placeholders(Generic[T]):
    """The media of a conversation. In the messages each is replaced by a text (a placeholder) that
    chat templates treat as a part of the message. It has random digits, so that a user cannot write
    it in a message; llama.cpp's marker in a user's message is plain text.

    Attributes:
        media: The media in the order in which they were added.
    """

    def __init__(self) -> None:
        self.media: list[T] = []
        digits = secrets.token_hex(16)
        self._form = f"<__media_{digits}_{{}}__>"
        self._pattern = re.compile(rf"<__media_{digits}_(\d+)__>")
        self._at_end = re.compile(rf"{self._pattern.pattern}\Z")

    def add(self, medium: T) -> str:
        """Add a medium and return its placeholder."""
        self.media.append(medium)
        return self._form.format(len(self.media) - 1)

    def joined(self, parts: Sequence[str]) -> str:
        """Join the parts of a message: each on a new line, but, as in llama.cpp, without line ends
        before and after a medium."""
        text = ""
        for i, part in enumerate(parts):
            beside = self._pattern.match(part) or self._at_end.search(text, len(text) - _LONGEST)
            text += part if beside or i == 0 else f"\n{part}"
        return text

    def shown(self, text: str) -> str:
        """Return a text with `MARKER` for each medium."""
        return self._pattern.sub(MARKER, text)

    def left_out(self, text: str) -> str:
        """Return a text without the placeholders."""
        return self._pattern.sub("", text)

    def split(self, prompt: str, text: Callable[[str], list[int]]) -> list[list[int] | T]:
        """Return the parts of a rendered prompt in order: tokens of texts, and media.

        Args:
            prompt: The prompt.
            text: Tokenizes a text before, between or after media.

        Raises:
            ArgumentError: The chat template has left a medium out.
        """
        parts: list[list[int] | T] = []
        left_out = set(range(len(self.media)))
        at = 0
        for one in self._pattern.finditer(prompt):
            if one.start() > at:
                parts.append(text(prompt[at : one.start()]))
            parts.append(self.media[int(one[1])])
            left_out.discard(int(one[1]))
            at = one.end()
        if left_out:
            raise ArgumentError(
                f"The chat template leaves out {len(left_out)} of the {len(self.media)} images and "
                "sounds; give them in messages of the user."
            )
        return [*parts, text(prompt[at:])]
