"""Regular expressions as grammars of the JSON strings that match them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from specllama.errors import ArgumentError
from specllama.requests.schema.literal import in_set, literal

_LAST = 0x10FFFF
_Range = tuple[int, int]

_SPACES = (" \f\n\r\t\v\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff", ("\u2000", "\u200a"))
_CLASSES: dict[str, list[_Range]] = {
    "d": [(ord("0"), ord("9"))],
    "w": [(ord("0"), ord("9")), (ord("A"), ord("Z")), (ord("_"), ord("_")), (ord("a"), ord("z"))],
    "s": [(ord(c), ord(c)) for c in _SPACES[0]] + [(ord(_SPACES[1][0]), ord(_SPACES[1][1]))],
}
_LINE_ENDS: list[_Range] = [(ord(c), ord(c)) for c in "\n\r\u2028\u2029"]
_CONTROLS = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_CODE_POINT = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
_SURROGATES = re.compile(r"u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_REPETITION = re.compile(r"\{(\d+)(,?)(\d*)\}", re.ASCII)
_MOST_GROUPS = 32
"""Deepest nesting of groups; a grammar may nest twice as deep."""
# Characters that stand in a JSON string unescaped.
_PLAIN: list[_Range] = [(0x20, 0x21), (0x23, 0x5B), (0x5D, _LAST)]
# The other characters that have a short escape; those that have none are not generated.
_ESCAPED = '"\\\b\f\n\r\t'


class PatternError(ArgumentError):
    """A regular expression that cannot be turned into a grammar."""


def pattern_rule(pattern: str) -> str:
    """Return the right side of a GBNF rule for the JSON strings that match, quotes included.

    Args:
        pattern: A regular expression as JSON schemas have them (ECMA-262), anchored by ^ and $;
            without look-around, back-references, word boundaries and Unicode properties.

    Raises:
        PatternError: The pattern is anything else.
    """
    if not (pattern.startswith("^") and pattern.endswith("$")) or len(pattern) < 2:
        raise PatternError(f"the pattern {pattern!r:.80} must begin with ^ and end with $")
    return f'"\\"" ({_Reader(pattern).read()}) "\\""'


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 1
        self._end = len(pattern) - 1
        self._n_groups = 0  # open groups

    def read(self) -> str:
        text = self._alternatives()
        if self._at < self._end:
            self._refuse("has a ) too many")
        return text

    def _alternatives(self) -> str:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return " | ".join(parts)

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < self._end and self._pattern[self._at] not in "|)":
            parts.append(self._atom() + self._repetition())
        return " ".join(parts) or '""'

    def _atom(self) -> str:
        c = self._next()
        if c == "(":
            return f"({self._group()})"
        if c == "[":
            return _one_of(self._set())
        if c == ".":
            return _one_of(_without(_LINE_ENDS))
        if c == "\\":
            return _one_of(self._escape())
        if c in "^$":
            self._refuse(f"has a {c} inside")
        if c in "*+?":
            self._refuse(f"has a {c} with nothing before it")
        return _one_of([(ord(c), ord(c))])

    def _group(self) -> str:
        if self._take("?") and not self._take(":"):
            name = re.compile(r"P?<[A-Za-z_$][\w$]*>").match(self._pattern, self._at)
            if name is None:
                self._refuse("looks around, or has flags")
            self._at = name.end()
        self._n_groups += 1
        if self._n_groups > _MOST_GROUPS:
            self._refuse(f"nests more than {_MOST_GROUPS} groups")
        text = self._alternatives()
        if not self._take(")"):
            self._refuse("has a ( that nothing closes")
        self._n_groups -= 1
        return text

    def _repetition(self) -> str:
        found = _REPETITION.match(self._pattern, self._at, self._end)
        if found is not None:
            self._at = found.end()
            low, comma, high = found.groups()
            if high and int(high) < int(low):
                self._refuse(f"has {found[0]}, which is nothing")
            times = f"{{{low}{comma}{high}}}"
        elif self._at < self._end and self._pattern[self._at] in "*+?":
            times = self._next()
        else:
            return ""
        self._take("?")  # lazy or greedy: the same texts match
        if self._at < self._end and self._pattern[self._at] in "*+":
            self._refuse("repeats a repetition")
        return times

    def _set(self) -> list[_Range]:
        negated = self._take("^")
        ranges: list[_Range] = []
        while not self._take("]"):
            first = self._member()
            if not (self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] != "]"):
                ranges += first
                continue
            self._at += 1
            last = self._member()
            low, high = _only(first), _only(last)
            if low is None or high is None or low > high:
                self._refuse("has a range of characters that is none")
            ranges.append((low, high))
        return _without(ranges) if negated else ranges

    def _member(self) -> list[_Range]:
        c = self._next()
        if c != "\\":
            return [(ord(c), ord(c))]
        if self._take("b"):
            return [(8, 8)]
        return self._escape()

    def _escape(self) -> list[_Range]:
        if (pair := _SURROGATES.match(self._pattern, self._at, self._end)) is not None:
            self._at = pair.end()
            code = ord(bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"))
            return [(code, code)]
        found = _CODE_POINT.match(self._pattern, self._at, self._end)
        if found is not None:
            self._at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            if code > _LAST or 0xD800 <= code < 0xE000:
                self._refuse(f"has \\{found[0]}, which is no character")
            return [(code, code)]
        c = self._next()
        if c in _CLASSES:
            return _CLASSES[c]
        if c.lower() in _CLASSES:
            return _without(_CLASSES[c.lower()])
        if c in _CONTROLS:
            return [(ord(_CONTROLS[c]), ord(_CONTROLS[c]))]
        if c.isalnum():
            self._refuse(f"has \\{c}, which no grammar can follow")
        return [(ord(c), ord(c))]

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < self._end else ""

    def _next(self) -> str:
        if self._at >= self._end:
            self._refuse("is not complete")
        self._at += 1
        return self._pattern[self._at - 1]

    def _take(self, c: str) -> bool:
        found = self._peek() == c
        self._at += found
        return found

    def _refuse(self, why: str) -> NoReturn:
        raise PatternError(f"the pattern {self._pattern!r:.80} {why}")


def _only(ranges: Sequence[_Range]) -> int | None:
    """Return the code of the only character in the ranges; None if there are more."""
    (low, high), *more = ranges
    return low if low == high and not more else None


def _without(ranges: Iterable[_Range]) -> list[_Range]:
    """Return the ranges of all characters but these."""
    left, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            left.append((start, low - 1))
        start = max(start, high + 1)
    return [*left, (start, _LAST)] if start <= _LAST else left


def _one_of(ranges: Sequence[_Range]) -> str:
    """Return GBNF for one of these characters, as it is written in a JSON string."""
    plain = [
        (max(low, first), min(high, last))
        for low, high in ranges
        for first, last in _PLAIN
        if max(low, first) <= min(high, last)
    ]
    escaped = [c for c in _ESCAPED if any(low <= ord(c) <= high for low, high in ranges)]
    parts = [literal(json.dumps(c)[1:-1]) for c in escaped]
    if len(plain) == 1 and plain[0][0] == plain[0][1]:
        parts.append(literal(chr(plain[0][0])))
    elif plain:
        parts.append("[" + "".join(map(_written, plain)) + "]")
    if not parts:
        raise PatternError("the pattern has a set of characters that no JSON string holds")
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _written(characters: _Range) -> str:
    first, last = (in_set(chr(code)) for code in characters)
    return first if first == last else f"{first}-{last}"
