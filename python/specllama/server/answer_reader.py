"""A model's answer, taken apart as it comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specllama import Chunk
from specllama.server.parts import Content, Part
from specllama.server.thoughts import ThoughtReader
from specllama.server.tools.reader import CallReader


class AnswerReader:
    """Takes one answer apart into thoughts, content and calls.

    Args:
        thoughts: What looks for thoughts; None: there are none.
        calls: The same of calls.
        marks: Texts of tokens that chunks do not show, by token.

    Attributes:
        n_thinking: Tokens of thoughts so far.
    """

    def __init__(
        self,
        thoughts: ThoughtReader | None,
        calls: CallReader | None,
        marks: Mapping[int | None, str],
    ) -> None:
        self._thoughts = thoughts
        self._calls = calls
        self._marks = marks
        self.n_thinking = 0

    @property
    def called(self) -> bool:
        """Whether there was a call."""
        return self._calls is not None and self._calls.n_calls > 0

    def read(self, chunks: Iterable[Chunk]) -> list[Part]:
        """Return all parts of an answer that is there as a whole."""
        return [part for chunk in chunks for part in self.push(chunk)] + self.finish()

    def push(self, chunk: Chunk) -> list[Part]:
        """Take the next chunk; return what is certain."""
        before = self._thinks
        text = chunk.text
        if self._calls is not None or not (self._thoughts is None or self._thoughts.ended):
            text = text or self._marks.get(chunk.token, "")
        parts: list[Part] = [Content(text)] if self._calls is None else self._calls.push(text)
        parts = self._with_thoughts(parts)
        self.n_thinking += before or self._thinks
        return parts

    def finish(self) -> list[Part]:
        """Return what was held back."""
        parts = [] if self._calls is None else self._with_thoughts(self._calls.finish())
        return parts if self._thoughts is None else [*parts, *self._thoughts.finish()]

    @property
    def _thinks(self) -> bool:
        return self._thoughts is not None and self._thoughts.thinks and not self.called

    def _with_thoughts(self, parts: Iterable[Part]) -> list[Part]:
        """Tell apart what is no call. (A call that begins in the middle of a thought is one.)"""
        if self._thoughts is None:
            return list(parts)
        found: list[Part] = []
        for part in parts:
            found += self._thoughts.push(part.text) if isinstance(part, Content) else [part]
        return found
