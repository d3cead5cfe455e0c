"""Splits a model's text, as it comes, into content and calls."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence

from specllama.server.answer_parts import Arguments, CallBegun, Content, Part
from specllama.server.tools.format import CallFormat
from specllama.server.tools.tool import Tool


class CallReader:
    """Splits a text as it comes. Text that may become the beginning of a call is held back, and so
    are blanks that may stand before one.

    Args:
        calls: How the model writes calls.
        tools: The tools that it may call.
        only: Whether the text has nothing but calls.
    """

    def __init__(self, calls: CallFormat, tools: Sequence[Tool], *, only: bool = False) -> None:
        self._head = calls.head
        self._openings = tuple(calls.openings(tools))
        first = {one[0] for one in self._openings}
        self._first = re.compile("[" + re.escape("".join(first)) + "]")
        self._text = ""
        self._read: Callable[[], Iterator[Part]] = self._read_content
        self._object = _ObjectEnd()
        self._only = only
        self.n_calls = 0

    @property
    def in_call(self) -> bool:
        """Whether the text so far ends inside the arguments of a call."""
        return self._read == self._read_arguments

    def push(self, text: str) -> list[Part]:
        """Take more of the text; return the parts that are certain."""
        self._text += text
        parts: list[Part] = []
        before: object = None
        while before != (self._read, self._text):
            before = (self._read, self._text)
            parts.extend(self._read())
        return parts

    def finish(self) -> list[Part]:
        """Return the text that was held back. After a call, or where there are only calls, it is
        the format's own: return none."""
        if self._text and not self.n_calls and not self._only:
            return [Content(self._text)]
        return []

    def _take(self, n: int) -> str:
        taken, self._text = self._text[:n], self._text[n:]
        return taken

    def _read_content(self) -> Iterator[Part]:
        # Most texts have no such character, and need no comparison with hundreds of openings.
        places = [found.start() for found in self._first.finditer(self._text)]
        begin = next((at for at in places if self._text.startswith(self._openings, at)), None)
        if begin is None:
            held = next((at for at in places if self._begins(self._text[at:])), None)
            certain = self._text[:held].rstrip()
        else:
            certain = self._text[:begin].rstrip()
            self._read = self._read_head
        if certain:
            yield Content(self._take(len(certain)))

    def _begins(self, text: str) -> bool:
        """Whether a text may become an opening."""
        return any(one.startswith(text) for one in self._openings)

    def _read_head(self) -> Iterator[Part]:
        if head := self._head.search(self._text):
            self._take(head.end())
            self._object = _ObjectEnd()
            self._read = self._read_arguments
            yield CallBegun(self.n_calls, f"call_{secrets.token_hex(12)}", head["name"])
            self.n_calls += 1

    def _read_arguments(self) -> Iterator[Part]:
        n = self._object.find(self._text)
        if n is not None:
            self._read = self._read_head
        if text := self._take(len(self._text) if n is None else n):
            yield Arguments(self.n_calls - 1, text)


class _ObjectEnd:
    """Finds the end of a JSON object that comes in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def find(self, text: str) -> int | None:
        """Take the next piece; return how many of its characters are the object's. None: the object
        does not end in it."""
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
                    return i + 1
        return None
