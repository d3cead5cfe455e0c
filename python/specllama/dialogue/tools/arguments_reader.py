"""Reads the arguments of a call while they are generated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol

from specllama.dialogue.tools.shape import KINDS, Parameters, Shape, flexible
from specllama.dialogue.tools.tool import Tool
from specllama.dialogue.tools.values import kinds_of, read_value
from specllama.model.marks import KEY, TAG, common_beginning, units

_MOST_ENDINGS = 64
"""Most texts inside a value that look like its ending."""


class ArgumentsReader(Protocol):
    """Reads arguments.

    Attributes:
        rest: The text after the arguments; None before they have ended.
    """

    rest: str | None

    def push(self, text: str) -> str:
        """Read more of the text; return the JSON that is final."""


def reader_of(shape: Shape, tool: Tool | None) -> ArgumentsReader:
    """Return a reader for the arguments of a call. tool: the called tool; None if it is unknown."""
    if shape.parameters is None:
        return _JsonReader()
    return _ParametersReader(shape.parameters, shape.tail, tool)


class _JsonReader:
    """Reads arguments that are a JSON object. Its text is returned unchanged."""

    def __init__(self) -> None:
        self.rest: str | None = None
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def push(self, text: str) -> str:
        """Read more of the text; return the JSON that is final."""
        for i, character in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = character == "\\"
                self._in_string = character != '"'
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self.rest = text[i + 1 :]
                    return text[: i + 1]
        return text


class _ParametersReader:
    """Reads arguments with marks around names and values, and writes them as JSON."""

    def __init__(self, parameters: Parameters, tail: str, tool: Tool | None) -> None:
        self.rest: str | None = None
        self._parameters = parameters
        self._properties = tool.properties if tool is not None else {}
        self._text = ""
        self._written = "{"
        self._n = 0
        self._read: Callable[[], bool] = self._read_key
        self._kinds: frozenset[str] = frozenset()
        self._ending: _Ending | _LooseEnding
        self._begun = False
        self._followers = (parameters.separator.strip() or parameters.begin.strip())[:1]
        self._followers += tail.lstrip()[:1]
        all_openings = {*parameters.openings.values(), *(parameters.verbatim or ())[:1]}
        openings = sorted(all_openings, key=len, reverse=True)
        self._longest = max(map(len, openings))
        self._openings = openings
        begin = flexible(parameters.begin)
        self._head = re.compile(
            rf"\s*(?:{flexible(parameters.separator)})?\s*{begin}(?P<key>[^\n]{{1,256}}?)"
            rf"(?P<opening>{'|'.join(map(_opening, openings))})"
        )
        self._end = re.compile(r"\s*" + flexible(_unlike(tail.lstrip(), parameters.begin.lstrip())))

    def push(self, text: str) -> str:
        """Read more of the text; return the JSON that is final."""
        self._text += text
        while self.rest is None and self._read():
            pass
        written, self._written = self._written, ""
        return written

    def _read_key(self) -> bool:
        """Read up to the next value, or to the end. Returns whether reading can continue."""
        if end := self._end.match(self._text):
            self.rest = self._text[end.start() :]
            self._written += "}"
            return False
        head = self._head.match(self._text)
        if head is None or len(self._text) < head.start("opening") + self._longest:
            return False
        opening = next(
            one for one in self._openings if re.fullmatch(_opening(one), head["opening"])
        )
        key = head["key"]
        kinds = kinds_of(self._properties.get(key, {}))
        marked = {kind for kind in KINDS if self._parameters.openings[kind] == opening}
        self._kinds = frozenset(marked & kinds or marked)
        if not marked:
            self._kinds = frozenset({"string"})
        ending = self._ending_of(opening)
        self._ending = (
            _Ending(ending.replace(KEY, key), self._followers)
            if ending.strip()
            else _LooseEnding(self._followers, self._parameters.quote)
        )
        self._text = self._text[head.end() :]
        self._written += (", " if self._n else "") + json.dumps(key, ensure_ascii=False) + ": "
        self._n += 1
        self._begun = False
        self._read = self._read_text if self._kinds == {"string"} else self._read_value
        return True

    def _ending_of(self, opening: str) -> str:
        if self._parameters.verbatim is not None and opening == self._parameters.verbatim[0]:
            return self._parameters.verbatim[1]
        return max((self._parameters.endings[kind] for kind in self._kinds), key=len)

    def _read_text(self) -> bool:
        """Read a text. Its final parts are written at once."""
        if not self._begun:
            self._written += '"'
            self._begun = True
        found = self._ending.search(self._text)
        if found is None:
            certain = self._ending.certain(self._text)
            self._write_text(self._text[:certain])
            self._text = self._text[certain:]
            return False
        self._write_text(self._text[: found[0]])
        self._written += '"'
        self._end_value(found[1])
        return True

    def _read_value(self) -> bool:
        """Read a value that may be something else than a text. It is written when complete."""
        while (found := self._ending.search(self._text)) is not None:
            text = self._text[: found[0]]
            kinds = self._kinds if "string" in self._kinds else frozenset(KINDS)
            if isinstance(self._ending, _Ending):
                kinds -= {"string"}
            value = read_value(text, kinds, self._parameters.quote)
            if value is None and text.lstrip().startswith(("{", "[", '"')) and self._ending.skip():
                continue
            self._written += json.dumps(text, ensure_ascii=False) if value is None else value
            self._end_value(found[1])
            return True
        return False

    def _end_value(self, n: int) -> None:
        self._text = self._text[n:]
        self._read = self._read_key

    def _write_text(self, text: str) -> None:
        self._written += json.dumps(text, ensure_ascii=False)[1:-1]


class _Ending:
    """Finds the end of a value in a growing text.

    Args:
        mark: The text after the value; the blanks at its beginning may be missing.
        followers: The characters that may follow the mark.
    """

    def __init__(self, mark: str, followers: str) -> None:
        core = mark.strip()
        self._blanks, self._core = mark[: mark.index(core)], core
        follows = "" if TAG.search(core) else rf"(?=\s*[{re.escape(followers)}])"
        self._pattern = re.compile(re.escape(core) + follows)
        self._from = self._n = 0

    def search(self, text: str) -> tuple[int, int] | None:
        """Return the ends of the value and of the mark; None if they are not in the text yet."""
        found = self._pattern.search(text, self._from)
        if found is None:
            return None
        self._skipped = found.end()
        begin = found.start()
        if self._blanks and text.endswith(self._blanks, 0, begin):
            begin -= len(self._blanks)
        return begin, found.end()

    def skip(self) -> bool:
        """Skip the mark found last, as a part of the value. Returns whether this is possible."""
        self._n += 1
        self._from = self._skipped
        return self._n < _MOST_ENDINGS

    def certain(self, text: str) -> int:
        """Return how many characters of a text without the mark certainly belong to the value."""
        whole = self._blanks + self._core
        first = max(len(text) - len(whole), 0)
        for i in range(first, len(text)):
            rest = text[i:]
            if whole.startswith(rest) or self._core.startswith(rest):
                return i
        return len(text)


class _LooseEnding:
    """Finds the end of a value without a mark after it: the first of the followers outside all
    brackets and quotation marks.

    Args:
        followers: The characters that may follow the value.
        quote: A further quotation mark.
    """

    def __init__(self, followers: str, quote: str) -> None:
        self._followers = followers
        self._quotes = tuple(one for one in (quote, '"', "'") if one)
        self._at = self._depth = 0
        self._quote = ""

    def search(self, text: str) -> tuple[int, int] | None:
        """Return the end of the value, twice; None if it is not in the text yet."""
        longest = max(map(len, self._quotes))
        while self._at <= len(text) - longest:
            if self._step(text):
                return self._at, self._at
        return None

    def _step(self, text: str) -> bool:
        """Pass over a character or a quotation mark; but return True if the value ends here."""
        if self._quote:
            if text.startswith(self._quote, self._at):
                self._at += len(self._quote)
                self._quote = ""
            else:
                self._at += 2 if text[self._at] == "\\" and len(self._quote) == 1 else 1
            return False
        if quote := next((one for one in self._quotes if text.startswith(one, self._at)), ""):
            self._quote = quote
            self._at += len(quote)
            return False
        character = text[self._at]
        if self._depth == 0 and character in self._followers:
            return True
        self._depth += (character in "{[") - (character in "}]")
        self._at += 1
        return False

    def skip(self) -> bool:
        """Return False: nothing can be skipped."""
        return False

    def certain(self, text: str) -> int:
        """Return how many characters of a text certainly belong to the value."""
        return 0


def _opening(text: str) -> str:
    """Return an expression for the text before a value; the blanks at its end may be missing."""
    core = text.rstrip()
    blanks = text[len(core) :]
    return flexible(core) + (f"(?:{re.escape(blanks)})?" if blanks else "")


def _unlike(tail: str, begin: str) -> str:
    """Return the beginning of a text up to its first unit that differs from another text."""
    same = common_beginning(tail, begin)
    return same + units(tail.removeprefix(same))[0]
