"""Writes a grammar in GBNF as llguidance's Lark."""

from __future__ import annotations

from functools import lru_cache

from specllama.errors import ArgumentError
from specllama.requests.gbnf.node import (
    Choice,
    Node,
    Reference,
    Sequence,
    Set,
    Special,
    Times,
)
from specllama.requests.gbnf.reader import read_gbnf
from specllama.requests.gbnf.terminals import Terminals
from specllama.requests.lark import lark


@lru_cache(32)
def gbnf_as_lark(gbnf: str) -> str:
    """Return a Lark grammar that allows the same texts. Raises ArgumentError if the GBNF cannot be
    parsed."""
    try:
        return _Writer(read_gbnf(gbnf)).written()
    except RecursionError:
        raise ArgumentError(
            "The grammar nests too deep; name some of its groups as rules."
        ) from None


class _Writer:
    """Writes each rule that is needed, once as a rule and once as a part of lexemes, as needed."""

    def __init__(self, rules: list[Node]) -> None:
        self._rules = rules
        self._terminals = Terminals(rules)
        self._written: dict[str, str] = {}
        self._left: list[tuple[str, Node]] = []
        self._named: set[str] = set()

    def written(self) -> str:
        self._need("start", self._rules[0])
        while self._left:
            name, node = self._left.pop()
            write = self._lexeme if name.isupper() else self._rule
            self._written[name] = write(node)
        return lark(self._written)

    def _need(self, name: str, node: Node) -> str:
        if name not in self._named:
            self._named.add(name)
            self._left.append((name, node))
        return name

    def _rule(self, node: Node) -> str:
        """Return the Lark text of a part outside of lexemes."""
        if self._terminals.is_whole(node) and not isinstance(node, Set):
            return self._whole(node)
        match node:
            case Reference():
                return self._need(f"r{node.rule}", self._rules[node.rule])
            case Sequence():
                return " ".join(map(self._rule, self._terminals.pieces(node))) or '""'
            case Choice():
                return f"({' | '.join(map(self._rule, node.choices))})"
            case Times():
                return f"({self._rule(node.part)}){_times(node)}"
            case Special():
                return node.text
        return self._lexeme(node)

    def _whole(self, node: Node) -> str:
        """Return the Lark text for a lexeme. A lexeme is never empty: if its part may be empty, the
        lexeme is optional."""
        name = f"T{len(self._named)}"
        text = self._lexeme(node)
        self._named.add(name)
        if not self._terminals.is_nullable(node):
            self._written[name] = text
            return name
        self._written[name] = f"({text}) & /(?s:.)+/"
        return f"({name})?"

    def _lexeme(self, node: Node) -> str:
        """Return the Lark text of a part inside a lexeme."""
        match node:
            case Set():
                return f"/[{''.join(_range(*one) for one in node.ranges)}]/"
            case Reference():
                return self._need(f"R{node.rule}", self._rules[node.rule])
            case Sequence():
                return " ".join(map(self._lexeme, node.items)) or '""'
            case Choice():
                return f"({' | '.join(map(self._lexeme, node.choices))})"
            case Times():
                return f"({self._lexeme(node.part)}){_times(node)}"
        raise AssertionError


def _times(node: Times) -> str:
    if node.most is None:
        return f"{{{node.least},}}"
    return f"{{{node.least},{node.most}}}"


def _code(code: int) -> str:
    return f"\\x{{{code:X}}}"


def _range(first: int, last: int) -> str:
    return _code(first) if first == last else f"{_code(first)}-{_code(last)}"
