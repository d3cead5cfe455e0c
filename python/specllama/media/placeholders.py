"""Texts that stand for the media of a conversation until its prompt is tokenized."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from specllama.errors import ArgumentError

MARKER = "<__media__>"
"""What stands for a medium where people see a prompt, as in llama.cpp."""

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

    def add(self, medium: T) -> str:
        """Return the text that stands for a medium from now on."""
        self.media.append(medium)
        return self._form.format(len(self.media) - 1)

    def joined(self, parts: Sequence[str]) -> str:
        """Return the parts of a message as one text: each in a line of its own, but, as llama.cpp
        has it, with nothing before and after a medium."""
        text = ""
        for i, part in enumerate(parts):
            apart = i > 0 and not (self._is_one(part) or self._is_one(parts[i - 1]))
            text += f"\n{part}" if apart else part
        return text

    def _is_one(self, text: str) -> bool:
        return self._pattern.fullmatch(text) is not None

    def shown(self, text: str) -> str:
        """Return a text with `MARKER` for each medium."""
        return self._pattern.sub(MARKER, text)

    def left_out(self, text: str) -> str:
        """Return a text with nothing for each medium."""
        return self._pattern.sub("", text)

    def split(self, prompt: str, text: Callable[[str], list[int]], token: int) -> MediaPrompt[T]:
        """Return the tokens of a rendered prompt.

        Args:
            prompt: The prompt.
            text: Tokenizes a text between media.
            token: What stands for a medium among the tokens.

        Raises:
            ArgumentError: The chat template has left a medium out.
        """
        found = list(self._pattern.finditer(prompt))
        media = [self.media[int(one[1])] for one in found]
        if missing := len(set(range(len(self.media))) - {int(one[1]) for one in found}):
            raise ArgumentError(
                f"The chat template leaves out {missing} of the {len(self.media)} images and "
                "sounds; give them in messages of the user."
            )
        tokens: list[int] = []
        at = 0
        for one in found:
            tokens += [*text(prompt[at : one.start()]), token]
            at = one.end()
        return MediaPrompt([*tokens, *text(prompt[at:])], media)


class MediaPrompt(list[int], Generic[T]):
    """The token ids of a prompt, among which one id stands for each medium.

    Attributes:
        media: The media, in their order in the prompt.
    """

    def __init__(self, tokens: Sequence[int], media: Sequence[T]) -> None:
        super().__init__(tokens)
        self.media = tuple(media)
