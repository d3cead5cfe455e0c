"""Texts that stand for the media of a conversation until its prompt is tokenized."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from specllama.errors import ArgumentError

MARKER = "<__media__>"
"""What stands for a medium where people see a prompt, as in llama.cpp."""

_LONGEST = 80
"""Characters of a text that stands for a medium."""

T = TypeVar("T")


class Placeholders(Generic[T]):
    """The media of a conversation. In the messages a text stands for each, which chat templates
    take for a part of the message. It has random digits, so that nobody can write it in a message:
    the marker of llama.cpp's in a user's text is that text.

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
        """Return the text that stands for a medium from now on."""
        self.media.append(medium)
        return self._form.format(len(self.media) - 1)

    def joined(self, parts: Sequence[str]) -> str:
        """Return the parts of a message as one text: each in a line of its own, but, as llama.cpp
        has it, with nothing before and after a medium."""
        text = ""
        for i, part in enumerate(parts):
            beside = self._pattern.match(part) or self._at_end.search(text, len(text) - _LONGEST)
            text += part if beside or i == 0 else f"\n{part}"
        return text

    def shown(self, text: str) -> str:
        """Return a text with `MARKER` for each medium."""
        return self._pattern.sub(MARKER, text)

    def left_out(self, text: str) -> str:
        """Return a text with nothing for each medium."""
        return self._pattern.sub("", text)

    def split(self, prompt: str, text: Callable[[str], list[int]]) -> list[list[int] | T]:
        """Return the parts of a rendered prompt in their order: tokens of texts, and media.

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
