"""Marks: the fixed texts around the values of a call, found by comparing rendered calls."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME, INDEX, ID, KEY = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
"""Placeholders in a mark for a tool's name, a call's number, its id and a parameter's name. No text
has these characters."""

TAG = re.compile(r"<[^<>\s][^<>\n]*>|\[/?[A-Z_]+\]")
"""A tag, or a control token in Mistral's form."""

_UNIT = re.compile(rf"{TAG.pattern}|\d+|[^\W\d]+|```|.", re.DOTALL)
_OPENERS, _CLOSERS = ("{", "[", "```"), ("}", "]", "```")


@dataclass(frozen=True)
class Repeated:
    """The texts around items that repeat: outer, begin ITEM end, separator, begin ITEM end, after.

    Attributes:
        outer: The text before the first item.
        begin: The text before each item.
        end: The text after each item.
        separator: The text between two items, after `end` and before `begin`.
        after: The text after the last item.
    """

    outer: str
    begin: str
    end: str
    separator: str
    after: str

    @classmethod
    def of(cls, first: str, between: str, last: str) -> Repeated:
        """Return the texts around items.

        Args:
            first: The text before the first item.
            between: The text between the first two items.
            last: The text after the last item.
        """
        begin = _common_end(first, between)
        outer = first[: len(first) - _length(begin, first)]
        rest = between[: len(between) - _length(begin, between)]
        end = common_beginning(rest, last)
        separator, after = rest[len(end) :], last[len(end) :]
        # Text before every item and after the last one belongs to the ends of items.
        while begin and not separator and after.startswith(unit := units(begin)[0]):
            if not (unit.isspace() or TAG.fullmatch(unit)):
                break
            outer, end = outer + unit, end + unit
            begin, after = begin.removeprefix(unit), after.removeprefix(unit)
        return cls(outer, begin, end, separator, after)


def units(text: str) -> list[str]:
    """Return the tags, words, numbers and other characters of a text."""
    return _UNIT.findall(text)


def common_beginning(one: str, other: str) -> str:
    """Return the units with which both texts begin."""
    found = ""
    for unit, same in zip(units(one), units(other), strict=False):
        if unit != same:
            break
        found += unit
    return found


def _common_end(first: str, second: str) -> str:
    """Return the units with which both texts end; INDEX replaces a number that is larger by one in
    the second text."""
    found: list[str] = []
    for one, other in zip(reversed(units(first)), reversed(units(second)), strict=False):
        if one.isdigit() and other.isdigit() and int(other) == int(one) + 1:
            found.append(INDEX)
        elif one == other:
            found.append(one)
        else:
            break
    return "".join(reversed(found))


def _length(end: str, text: str) -> int:
    """Return the length, in characters of `text`, of an end from `_common_end`."""
    n = len(units(end))
    return len("".join(units(text)[-n:])) if n else 0


def n_openers(text: str) -> int:
    """Return how many tags, opening brackets and fences a text has."""
    return sum(bool(TAG.fullmatch(one)) or one in _OPENERS for one in units(text))


def closing(text: str, n: int, ends: tuple[str, ...] = ()) -> str:
    """Return the beginning of a text up to its n-th tag, closing bracket or fence, or up to one of
    `ends`, the texts that end a turn."""
    taken = whole = ""
    for unit in units(text):
        if n == 0 or text.startswith(ends, len(taken)):
            break
        taken += unit
        if TAG.fullmatch(unit) or unit in _CLOSERS:
            n -= 1
            whole = taken
    return whole
