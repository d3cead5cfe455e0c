"""Finds the parts of a grammar that may be lexemes.

llguidance reads a text with a lexer and a parser. The lexer always takes the longest lexeme. GBNF
has no lexer: each character may belong to any part. So a part becomes a lexeme only if this does
not change the grammar: after a text of the part, no character may follow that could also continue
this or another lexeme. Single characters are always safe, so every grammar can be written. Larger
lexemes are faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from specllama.requests.gbnf.node import (
    Choice,
    Node,
    Reference,
    Sequence,
    Set,
    Special,
    Times,
    within,
)

_MOST_STEPS = 400_000
"""Most steps of the search, some tenths of a second. A grammar that needs more is read character by
character."""
_MOST_LEVELS = 30
"""Most levels of nested rules in a lexeme."""


class _TooManyError(Exception):
    pass


@dataclass
class _Graph:
    """The characters of a part, and which may follow which. The graph may have more successors than
    the grammar: repetitions have no upper limit in it, and a rule may continue as at any of its
    references in the part."""

    characters: list[int] = field(default_factory=list)
    """Sets of classes, as bits."""
    after: list[set[int]] = field(default_factory=list)
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


class Terminals:
    """The parts of a grammar's rules that are lexemes."""

    def __init__(self, rules: list[Node]) -> None:
        self._rules = rules
        self._steps = 0
        self._level: list[int | None] = [None] * len(rules)
        self._regular: dict[Node, bool] = {}
        self._split: set[Node] = set()
        self._runs: dict[tuple[Node, ...], Sequence] = {}
        bounds = {
            bound
            for rule in rules
            for node in within(rule)
            if isinstance(node, Set)
            for first, last in node.ranges
            for bound in (first, last + 1)
        }
        self._bounds = {bound: index for index, bound in enumerate(sorted(bounds))}
        self._nullable = [False] * len(rules)
        self._first = [0] * len(rules)
        self._follow: dict[Node, int] = {}
        self._graphs: dict[Node, _Graph] = {}
        try:
            self._look_at_characters()
            self._find_levels()
            self._find()
        except (_TooManyError, RecursionError):
            self._split = {node for rule in rules for node in within(rule)}

    def is_whole(self, node: Node) -> bool:
        """Whether a part outside of lexemes is a lexeme."""
        return self._is_regular(node) and node not in self._split

    def is_nullable(self, node: Node) -> bool:
        """Whether a part may be the empty text."""
        match node:
            case Sequence():
                return all(map(self.is_nullable, node.items))
            case Choice():
                return any(map(self.is_nullable, node.choices))
            case Times():
                return node.least == 0 or self.is_nullable(node.part)
            case Reference():
                return self._nullable[node.rule]
        return False

    def pieces(self, sequence: Sequence) -> list[Node]:
        """Return the parts of a sequence that is not a lexeme. Neighbours that may form one lexeme
        are joined."""
        pieces: list[Node] = []
        run: list[Node] = []
        for item in (*sequence.items, None):
            if item is not None and self._is_regular(item) and sequence not in self._split:
                run.append(item)
                continue
            if len(run) > 1:
                joined = self._runs.setdefault(tuple(run), Sequence(tuple(run)))
                self._follow.setdefault(joined, self._follow.get(run[-1], 0))
                pieces.append(joined)
            else:
                pieces += run
            run = []
            if item is not None:
                pieces.append(item)
        return pieces

    def _step(self, n: int = 1) -> None:
        self._steps += n
        if self._steps > _MOST_STEPS:
            raise _TooManyError

    def _find_levels(self) -> None:
        """Find the levels of rules below each rule. None: the rule is recursive, too deep for a
        lexeme, or has a part that cannot be in a lexeme."""
        refers = [
            {node.rule for node in within(rule) if isinstance(node, Reference)}
            for rule in self._rules
        ]
        left = {
            i for i, rule in enumerate(self._rules) if not any(map(self._is_none, within(rule)))
        }
        for n in range(_MOST_LEVELS):
            self._step(len(left))
            known = [i for i in left if all(self._level[j] is not None for j in refers[i])]
            for i in known:
                self._level[i] = n
            left.difference_update(known)

    def _is_none(self, node: Node) -> bool:
        """Return whether a part can never be in a lexeme: a token, or a repetition of a part that
        may be empty, which a lexer could read in too many ways."""
        if isinstance(node, Times):
            return node.again and self.is_nullable(node.part)
        return isinstance(node, Special)

    def _is_regular(self, node: Node) -> bool:
        if node not in self._regular:
            self._regular[node] = (
                not self._is_none(node)
                and not (isinstance(node, Reference) and self._level[node.rule] is None)
                and all(map(self._is_regular, node.parts))
            )
        return self._regular[node]

    def _classes(self, node: Set) -> int:
        """Return the classes of characters in a set, as bits."""
        bits = 0
        for first, last in node.ranges:
            bits |= (1 << self._bounds[last + 1]) - (1 << self._bounds[first])
        return bits

    def _first_of(self, node: Node) -> int:
        self._step()
        match node:
            case Set():
                return self._classes(node)
            case Reference():
                return self._first[node.rule]
            case Sequence():
                bits = 0
                for item in node.items:
                    bits |= self._first_of(item)
                    if not self.is_nullable(item):
                        break
                return bits
        bits = 0
        for part in node.parts:
            bits |= self._first_of(part)
        return bits

    def _look_at_characters(self) -> None:
        """Find which rules may be empty, which characters begin them, and which may follow
        parts."""
        changed = True
        while changed:
            changed = False
            for i in reversed(range(len(self._rules))):
                found = self.is_nullable(self._rules[i]), self._first_of(self._rules[i])
                changed |= found != (self._nullable[i], self._first[i])
                self._nullable[i], self._first[i] = found
        after = [0] * len(self._rules)
        before: list[int] = []
        while before != after:
            before = [*after]
            for i, rule in enumerate(self._rules):
                self._follow_by(rule, after[i], after)

    def _follow_by(self, node: Node, bits: int, after: list[int]) -> None:
        """Record that these characters may follow a part."""
        self._step()
        self._follow[node] = self._follow.get(node, 0) | bits
        match node:
            case Reference():
                after[node.rule] |= bits
            case Sequence():
                for item in reversed(node.items):
                    self._follow_by(item, bits, after)
                    bits = self._first_of(item) | (bits if self.is_nullable(item) else 0)
            case Times():
                self._follow_by(
                    node.part, bits | (self._first_of(node) if node.again else 0), after
                )
            case Choice():
                for choice in node.choices:
                    self._follow_by(choice, bits, after)

    def _lexemes(self) -> Iterator[Node]:
        """Yield the lexemes with the current splits."""
        seen = {0}
        left: list[Node] = [self._rules[0]]
        while left:
            node = left.pop()
            self._step()
            if self.is_whole(node):
                yield node
            elif isinstance(node, Reference):
                if node.rule not in seen:
                    seen.add(node.rule)
                    left.append(self._rules[node.rule])
            else:
                left += self.pieces(node) if isinstance(node, Sequence) else node.parts

    def _find(self) -> None:
        """Split unsafe lexemes until all are safe."""
        while True:
            lexemes = list(self._lexemes())
            bad = {
                node
                for one in lexemes
                for other in lexemes
                if self._goes_on(one, other)
                for node in (one, other)
                if not isinstance(node, Set)
            }
            if not bad:
                return
            self._split |= bad

    def _goes_on(self, one: Node, other: Node) -> bool:
        """Return whether, after a text of `one`, a character may follow with which `other` could
        continue the same text."""
        follow = self._follow.get(one, 0)
        a, b = self._graph(one), self._graph(other)
        left = [(i, j) for i in a.first for j in b.first if a.characters[i] & b.characters[j]]
        seen = set(left)
        while left:
            self._step()
            i, j = left.pop()
            if i in a.last and any(b.characters[k] & follow for k in b.after[j]):
                return True
            for pair in ((k, m) for k in a.after[i] for m in b.after[j]):
                self._step()
                if pair not in seen and a.characters[pair[0]] & b.characters[pair[1]]:
                    seen.add(pair)
                    left.append(pair)
        self._step(len(a.first) * len(b.first) + 1)
        return False

    def _graph(self, node: Node) -> _Graph:
        if node not in self._graphs:
            graph = _Graph()
            known: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
            graph.first, graph.last = self._add(graph, known, node)
            self._graphs[node] = graph
        return self._graphs[node]

    def _add(
        self, graph: _Graph, known: dict[int, tuple[frozenset[int], frozenset[int]]], node: Node
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Add a part's characters to a graph; return the first and the last characters of the
        part."""
        self._step()
        match node:
            case Set():
                graph.characters.append(self._classes(node))
                graph.after.append(set())
                only = frozenset([len(graph.after) - 1])
                return only, only
            case Reference():
                if node.rule not in known:
                    known[node.rule] = self._add(graph, known, self._rules[node.rule])
                return known[node.rule]
            case Times():
                first, last = self._add(graph, known, node.part)
                if node.again:
                    self._link(graph, last, first)
                return first, last
            case Choice():
                ends = [self._add(graph, known, choice) for choice in node.choices]
                return (
                    frozenset().union(*(one[0] for one in ends)),
                    frozenset().union(*(one[1] for one in ends)),
                )
        first, last, empty = frozenset[int](), frozenset[int](), True
        for item in node.parts:
            item_first, item_last = self._add(graph, known, item)
            self._link(graph, last, item_first)
            if empty:
                first |= item_first
            nullable = self.is_nullable(item)
            last = last | item_last if nullable else item_last
            empty &= nullable
        return first, last

    def _link(self, graph: _Graph, before: Iterable[int], after: frozenset[int]) -> None:
        for i in before:
            self._step(len(after))
            graph.after[i] |= after
