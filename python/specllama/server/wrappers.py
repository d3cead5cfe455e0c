"""Takes texts that are not part of what is said out of the content of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specllama.server.answer_parts import Content


class WrapperReader:
    """Leaves out texts around content, as it comes. Text that may become one of them is held back.

    Args:
        wrappers: The texts, at least one.
    """

    def __init__(self, wrappers: Sequence[str]) -> None:
        self._wrappers = wrappers
        self._pattern = re.compile("|".join(map(re.escape, wrappers)))
        self._longest = max(map(len, wrappers))
        self._text = ""

    def push(self, text: str) -> list[Content]:
        """Take more of the text; return the parts that are certain."""
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
