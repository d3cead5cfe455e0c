"""Splits a model's answer into parts while it is generated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from specllama._core import Chunk
from specllama.dialogue.answer_parts import Content, Part
from specllama.dialogue.thoughts import ThoughtReader
from specllama.dialogue.tools.reader import CallReader


class WrapperReader:
    """Removes the texts around content. Text that may become one of them is held back.

    Args:
        wrappers: The texts, at least one.
    """

    def __init__(self, wrappers: Sequence[str]) -> None:
        self._wrappers = wrappers
        self._pattern = re.compile("|".join(map(re.escape, wrappers)))
        self._longest = max(map(len, wrappers))
        self._text = ""

    def push(self, text: str) -> list[Content]:
        """Read more of the text; return the parts that are final."""
        self._text = self._pattern.sub("", self._text + text)
        n = len(self._text)
        first = max(n - self._longest + 1, 0)
        held = next((i for i in range(first, n) if self._may_begin(self._text[i:])), n)
        certain, self._text = self._text[:held], self._text[held:]
        return [Content(certain)] if certain else []

    def finish(self) -> list[Content]:
        """Return the text that was held back, at the end of the answer."""
        return [Content(self._text)] if self._text else []

    def _may_begin(self, text: str) -> bool:
        return any(one.startswith(text) for one in self._wrappers)


_Reader = ThoughtReader | CallReader | WrapperReader


class AnswerReader:
    """Splits one answer into thoughts, content and calls.

    Args:
        thoughts: Reader that finds thoughts; None: thoughts are not separated.
        calls: Reader that finds calls; None: there are no tools.
        marks: Texts of special tokens that chunks do not show, by token.
        wrappers: Reader that removes texts around content; None: there are no such texts.
        calls_in_thoughts: Whether a call may begin inside a thought, because a grammar starts at
            the call's opening.

    Attributes:
        n_thinking: Number of tokens of thoughts so far.
        separates_thoughts: Whether thoughts are separated.
    """

    def __init__(
        self,
        thoughts: ThoughtReader | None,
        calls: CallReader | None,
        marks: Mapping[int | None, str],
        *,
        wrappers: WrapperReader | None = None,
        calls_in_thoughts: bool = True,
    ) -> None:
        self.n_thinking = 0
        self.separates_thoughts = thoughts is not None
        self._thoughts = thoughts
        self._calls = calls
        self._marks = marks
        self._wrappers = wrappers
        first = (calls, thoughts) if calls_in_thoughts else (thoughts, calls)
        self._readers: Sequence[_Reader] = [one for one in (*first, wrappers) if one]

    @property
    def called(self) -> bool:
        """Whether the answer so far has a call."""
        return self._calls is not None and self._calls.n_calls > 0

    @property
    def in_call(self) -> bool:
        """Whether the answer so far ends inside the arguments of a call."""
        return self._calls is not None and self._calls.in_call

    def read(self, chunks: Iterable[Chunk]) -> list[Part]:
        """Return all parts of an answer that has ended."""
        return [part for chunk in chunks for part in self.push(chunk)] + self.finish()

    def push(self, chunk: Chunk) -> list[Part]:
        """Read the next chunk; return the parts that are final."""
        before = self._thinks
        text = chunk.text
        thinks = self._thoughts is not None and not self._thoughts.ended
        if self._calls is not None or self._wrappers is not None or thinks:
            text = text or self._marks.get(chunk.token, "")
        parts: list[Part] = [Content(text)]
        for reader in self._readers:
            parts = _read(reader, parts)
        self.n_thinking += chunk.token is not None and (before or self._thinks)
        return parts

    def finish(self) -> list[Part]:
        """Return the parts that were held back, at the end of the answer."""
        parts: list[Part] = []
        for reader in self._readers:
            parts = [*_read(reader, parts), *reader.finish()]
        return parts

    @property
    def _thinks(self) -> bool:
        return self._thoughts is not None and self._thoughts.thinks and not self.called


def _read(reader: _Reader, parts: Iterable[Part]) -> list[Part]:
    """Split the parts that are content with a reader; other parts are unchanged."""
    found: list[Part] = []
    for part in parts:
        found += reader.push(part.text) if isinstance(part, Content) else [part]
    return found
