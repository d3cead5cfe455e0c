"""Texts of a grammar, drawn at random without a model."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\])|(?P<rule>[\w-]+)
    |(?P<mark>[()|])|(?P<times>[*+?]|\{\d*,?\d*\}))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x(..)|u(....)|U(........)|(.))")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_DRAWN = [*map(chr, range(256)), "\u540d", "\U0001f600"]
"""Characters, of which each set of a schema's grammar has some."""
_DEEP = 30
_MOST = 10**6


@dataclass(frozen=True)
class _Part:
    """A text, the name of a rule, characters, parts that follow each other ("all") or stand for
    each other ("any"), or one that comes some times."""

    kind: str
    of: Any
    low: int = 1
    high: int = 1


def texts(grammar: str, n: int) -> list[str]:
    """Draw n texts of a grammar with one rule on each line."""
    rules = {}
    for line in grammar.split("\n"):
        name, _, rule = line.partition(" ::= ")
        rules[name] = _alternatives(list(_TOKEN.finditer(rule))[::-1])
    drawer = _Drawer(rules)
    return [drawer.text(seed) for seed in range(n)]


class _Drawer:
    def __init__(self, rules: dict[str, _Part]) -> None:
        self._rules = rules
        self._rng = random.Random()
        self._depths = dict.fromkeys(rules, _MOST)  # of rules within each, at least
        while self._depths != (depths := {name: self._depth(rules[name]) + 1 for name in rules}):
            self._depths = depths

    def text(self, seed: int) -> str:
        self._rng.seed(seed)
        return self._drawn(_Part("rule", "root"), 0)

    def _depth(self, part: _Part) -> int:
        if part.kind == "rule":
            return min(_MOST, self._depths[part.of])
        if part.kind in ("any", "all"):
            return (min if part.kind == "any" else max)(map(self._depth, part.of), default=0)
        return self._depth(part.of) if part.kind == "times" and part.low else 0

    def _drawn(self, part: _Part, depth: int) -> str:
        """Deep within rules, only what must come is drawn, and what ends first."""
        if part.kind == "rule":
            return self._drawn(self._rules[part.of], depth + 1)
        if part.kind == "all":
            return "".join(self._drawn(one, depth) for one in part.of)
        if part.kind == "any":
            most = _MOST - 1 if depth < _DEEP else self._depth(part)
            open_to_it = [one for one in part.of if self._depth(one) <= most]
            return self._drawn(self._rng.choice(open_to_it), depth)
        if part.kind == "times":
            more = min(int(self._rng.expovariate(0.7)), part.high - part.low)
            more *= depth < _DEEP and self._depth(part.of) < _MOST
            return "".join(self._drawn(part.of, depth) for _ in range(part.low + more))
        return str(part.of if part.kind == "text" else self._rng.choice(part.of))


def _alternatives(tokens: list[re.Match[str]]) -> _Part:
    """Take alternatives from the end of a list, up to the parenthesis that closes them."""
    parts: list[list[_Part]] = [[]]
    while tokens and (token := tokens.pop())["mark"] != ")":
        if token["mark"] == "|":
            parts.append([])
        elif token["mark"] == "(":
            parts[-1].append(_alternatives(tokens))
        elif token["times"]:
            parts[-1].append(_Part("times", parts[-1].pop(), *_bounds(token["times"])))
        elif token["text"]:
            parts[-1].append(_Part("text", _ESCAPE.sub(_character, token["text"][1:-1])))
        elif token["set"]:
            within = re.compile(_ESCAPE.sub(_escaped, token["set"]))
            parts[-1].append(_Part("set", list(filter(within.fullmatch, _DRAWN))))
        else:
            parts[-1].append(_Part("rule", token["rule"]))
    return _Part("any", [_Part("all", one) for one in parts])


def _bounds(times: str) -> tuple[int, int]:
    if times in ("*", "+", "?"):
        return int(times == "+"), 1 if times == "?" else _MOST
    low, comma, high = times[1:-1].partition(",")
    return int(low or 0), int(high or _MOST) if comma else int(low)


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    return chr(int(code, 16)) if code else _CONTROLS.get(found[4], found[4])


def _escaped(found: re.Match[str]) -> str:
    return re.escape(_character(found))
