"""Parses a grammar in GBNF, like llama.cpp's parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from specllama.errors import ArgumentError
from specllama.requests.gbnf.node import (
    LAST_CHARACTER,
    Choice,
    Node,
    Reference,
    Sequence,
    Set,
    Special,
    Times,
)

_MOST_NESTED = 64
"""Most levels of nested groups."""
_MOST_REPEATED = 2000
"""The largest lower bound of a repetition, as in llama.cpp. A larger upper bound means no limit."""
_QUOTED = 24
"""Characters of the grammar that an error quotes."""

_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_OR_LINE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9-]+")
_TOKEN = re.compile(r"(!?)<(?:\[([0-9]+)\]|([^>\r\n]+))>")
_BOUNDS = re.compile(r"\{\s*([0-9]+)\s*(?:(,)\s*([0-9]*)\s*)?\}")
_LINE_END = re.compile(r"\r\n?|\n|\Z")
_CHARACTER = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([trn\\\"\[\]-]))|([^\\])",
    re.DOTALL,
)
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ESCAPED = {"t": "\t", "r": "\r", "n": "\n"}


def read_gbnf(text: str) -> list[Node]:
    """Return the rules of a grammar; rule 0 is `root`. Raises ArgumentError."""
    reader = _Reader(text)
    reader.read()
    return [reader.rules[number] for number in range(len(reader.rules))]


class _Reader:
    """Parses a grammar into its rules."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._numbers = {"root": 0}
        self.rules: dict[int, Node] = {}

    def read(self) -> None:
        self._skip(_SPACE_OR_LINE)
        while self._at < len(self._text):
            number = self._number(self._match(_NAME, "a name")[0])
            self._skip(_SPACE)
            if not self._text.startswith("::=", self._at):
                self._fail("::=")
            self._at += 3
            self._skip(_SPACE_OR_LINE)
            self.rules[number] = self._choice(0)
            self._match(_LINE_END, "the end of the line")
            self._skip(_SPACE_OR_LINE)
        for name, number in self._numbers.items():
            if number not in self.rules:
                raise ArgumentError(f'The grammar has no rule "{name}"; add it.')

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _skip(self, space: re.Pattern[str]) -> None:
        found = space.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            self._fail(what)
        self._at = found.end()
        return found

    def _fail(self, what: str) -> NoReturn:
        rest = self._text[self._at :]
        where = f"before {rest[:_QUOTED]!r}" if rest else "at its end"
        raise ArgumentError(f"The grammar cannot be read: {what} is missing {where}.")

    def _choice(self, depth: int) -> Node:
        if depth > _MOST_NESTED:
            raise ArgumentError(
                f"The grammar nests more than {_MOST_NESTED} groups; name some of them as rules."
            )
        choices: list[Node] = [self._sequence(depth)]
        while self._text.startswith("|", self._at):
            self._at += 1
            self._skip(_SPACE_OR_LINE)
            choices.append(self._sequence(depth))
        return _joined(choices, Choice)

    def _sequence(self, depth: int) -> Node:
        space = _SPACE_OR_LINE if depth else _SPACE
        items: list[Node] = []
        while (item := self._item(depth)) is not None:
            self._skip(space)
            while times := self._times():
                item = Times(item, *times)
                self._skip(space)
            items.append(item)
        return _joined(items, Sequence)

    def _item(self, depth: int) -> Node | None:
        start = self._text[self._at : self._at + 1]
        if start and start in '"[.(':
            self._at += 1
        if start == '"':
            codes = [ord(one) for one in self._until('"')]
            return _joined([Set(((code, code),)) for code in codes], Sequence)
        if start == "[":
            return self._set()
        if start == ".":
            return Set(((0, LAST_CHARACTER),))
        if start == "(":
            return self._group(depth)
        if start and start in "<!":
            negated, number, name = self._match(_TOKEN, "a token").groups()
            if negated and name:
                raise ArgumentError(f"!<{name}> is not supported; give the token's number.")
            return Special(f"<[{'^' if negated else ''}{number}]>" if number else f"<{name}>")
        found = _NAME.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return Reference(self._number(found[0]))

    def _group(self, depth: int) -> Node:
        self._skip(_SPACE_OR_LINE)
        group = self._choice(depth + 1)
        if not self._text.startswith(")", self._at):
            self._fail(")")
        self._at += 1
        return group

    def _until(self, end: str) -> Iterator[str]:
        while not self._text.startswith(end, self._at):
            yield self._character()
        self._at += 1

    def _character(self) -> str:
        two, four, eight, escaped, plain = self._match(_CHARACTER, "a character").groups()
        if code := two or four or eight:
            if int(code, 16) > LAST_CHARACTER:
                raise ArgumentError(f"The grammar has \\U{code}, which is not a character.")
            return chr(int(code, 16))
        return plain or _ESCAPED.get(escaped, escaped)

    def _set(self) -> Set:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        ranges = []
        while not self._text.startswith("]", self._at):
            first = last = ord(self._character())
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                last = ord(self._character())
            ranges.append((first, last))
        self._at += 1
        return Set.of(ranges, negated=negated)

    def _times(self) -> tuple[int, int | None] | None:
        sign = self._text[self._at : self._at + 1]
        if sign in _SIGNS:
            self._at += 1
            return _SIGNS[sign]
        if sign != "{":
            return None
        least, comma, most = self._match(_BOUNDS, "{n}, {n,} or {n,m}").groups()
        low = _number(least)
        high = None if comma and not most else _number(most or least)
        if low > _MOST_REPEATED:
            raise ArgumentError(
                f"The grammar has a repetition of at least {low} times; the lower bound may be at "
                f"most {_MOST_REPEATED}."
            )
        if high is not None and high < low:
            raise ArgumentError(
                f"The grammar has a repetition {{{low},{high}}}; the upper bound must not be less "
                "than the lower one."
            )
        return low, None if high is not None and high > _MOST_REPEATED else high


def _joined(nodes: list[Node], kind: type[Sequence] | type[Choice]) -> Node:
    return nodes[0] if len(nodes) == 1 else kind(tuple(nodes))


def _number(digits: str) -> int:
    """Return a number; 10^18 instead of larger ones."""
    return int(digits[-18:]) if len(digits.lstrip("0")) < 18 else 10**18
