"""Splits a model's text, while it is generated, into its thought and the content after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from specllama.dialogue.answer_parts import Content, Thought
from specllama.model.thinking import Thinking


class ThoughtReader:
    """Splits a growing text into a thought, if it begins with one, and content. Text that may
    become the opening or closing of the thought is held back, as are the blanks next to these,
    which belong to neither part.

    Args:
        tags: The opening and the closing of a thought.
        opened: Whether the prompt ends inside a thought, after its opening.
    """

    def __init__(self, tags: Thinking, *, opened: bool) -> None:
        self._tags = tags
        self._text = ""
        self._begun = False  # whether a part of the thought was yielded
        self._read: Callable[[], Iterator[Thought | Content]] = (
            self._read_thought if opened else self._read_opening
        )

    @property
    def thinks(self) -> bool:
        """Whether the text is inside the thought."""
        return self._read == self._read_thought

    @property
    def ended(self) -> bool:
        """Whether all text from here on is content."""
        return self._read == self._read_rest

    def push(self, text: str) -> list[Thought | Content]:
        """Read more of the text; return the parts that are final."""
        self._text += text
        parts: list[Thought | Content] = []
        before: object = None
        while before != self._read:
            before = self._read
            parts.extend(self._read())
        return parts

    def finish(self) -> list[Thought | Content]:
        """Return the text that was held back, at the end of the answer."""
        if self.thinks:
            text = self._text.rstrip() if self._begun else self._text.strip()
            return [Thought(text)] if text else []
        if self._read == self._read_opening and self._text:
            return [Content(self._text)]
        return []

    def _read_opening(self) -> Iterator[Thought | Content]:
        begin = self._text.lstrip()
        if begin.startswith(self._tags.opening):
            self._text = begin.removeprefix(self._tags.opening)
            self._read = self._read_thought
        elif not self._tags.opening.startswith(begin):
            self._read = self._read_rest
        yield from ()

    def _read_thought(self) -> Iterator[Thought | Content]:
        if not self._begun:
            self._text = self._text.lstrip()
        thought, closing, behind = self._text.partition(self._tags.closing)
        certain = (thought if closing else thought[: self._n_open()]).rstrip()
        if certain:
            self._begun = True
            yield Thought(certain)
        self._text = self._text.removeprefix(certain)
        if closing:
            self._text = behind
            self._read = self._read_blanks

    def _read_blanks(self) -> Iterator[Thought | Content]:
        self._text = self._text.lstrip()
        if self._text:
            self._read = self._read_rest
        yield from ()

    def _read_rest(self) -> Iterator[Thought | Content]:
        if self._text:
            yield Content(self._text)
        self._text = ""

    def _n_open(self) -> int:
        """Return where an incomplete closing may begin; the text's length if nowhere."""
        n, closing = len(self._text), self._tags.closing
        first = max(n - len(closing) + 1, 0)
        return next((i for i in range(first, n) if closing.startswith(self._text[i:])), n)
