"""The parts of a grammar in GBNF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True, eq=False)
class Node:
    """A part of a rule. Equal parts in two places are different parts."""

    @property
    def parts(self) -> tuple[Node, ...]:
        """The parts directly inside it."""
        return ()


@dataclass(frozen=True, eq=False)
class Set(Node):
    """One character of a set.

    Attributes:
        ranges: Pairs of first and last code point, ascending, with gaps between them.
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: list[tuple[int, int]], *, negated: bool = False) -> Set:
        """Return the set of these ranges, or of all other characters."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(one for one in ranges if one[0] <= one[1]):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(last, joined[-1][1])
            else:
                joined.append((first, last))
        if not negated:
            return cls(tuple(joined))
        starts = [0, *(last + 1 for _, last in joined)]
        ends = [*(first - 1 for first, _ in joined), LAST_CHARACTER]
        return cls(tuple((a, b) for a, b in zip(starts, ends, strict=True) if a <= b))


@dataclass(frozen=True, eq=False)
class Special(Node):
    """A token by its number or name, as Lark writes it."""

    text: str


@dataclass(frozen=True, eq=False)
class Reference(Node):
    """Another rule, by its number."""

    rule: int


@dataclass(frozen=True, eq=False)
class Sequence(Node):
    """Several parts in sequence; none: the empty text."""

    items: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.items


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """One of several parts."""

    choices: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.choices


@dataclass(frozen=True, eq=False)
class Times(Node):
    """A repeated part, `least` to `most` times; most None: no upper limit."""

    part: Node
    least: int
    most: int | None

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.part,)

    @property
    def again(self) -> bool:
        """Whether it may occur more than once."""
        return self.most is None or self.most > 1


def within(node: Node) -> Iterator[Node]:
    """Yield a part and all parts in it. References are not followed."""
    yield node
    for part in node.parts:
        yield from within(part)
