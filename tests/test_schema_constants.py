"""JSON schemas: one of many constants."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from grammar_texts import texts
from schema_values import held, values
from specllama import ArgumentError, SpecSession
from specllama.requests.grammar import gbnf
from specllama.requests.schema.alternatives import alternatives
from specllama.requests.schema.literal import literal

Open = Callable[..., SpecSession]

TEXTS = {
    "one": ["a"],
    "twice": ["ab", "ab"],
    "beginnings of each other": ["a", "ab", "abc", "b", "abcd", "abd"],
    "marks of grammars": ['"("', '"\\n|"', '"a b"', '")*"', "1", "12", "1.5", "null", "[]"],
    "every script": ["\u540d\u524d", "\u540d", "\U0001f600", "\u00e9t\u00e9", "\u00e9"],
    "deep": ["x" * n for n in range(1, 200)],
    "all of two letters": ["".join(text) for text in itertools.product("ab", repeat=8)],
}


def as_regex(gbnf: str) -> re.Pattern[str]:
    """Literals, groups and alternatives as a regular expression."""
    pattern = ""
    for quoted, mark in re.findall(r'("(?:[^"\\]|\\.)*")|([()| ])', gbnf):
        text = re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), quoted[1:-1])
        pattern += "(?:" if mark == "(" else re.escape(text) if quoted else mark.strip()
    return re.compile(pattern)


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS.keys())
def test_alternatives_are_these_and_no_others(texts: list[str]) -> None:
    rule = as_regex(alternatives(texts))
    others = {text + more for text in texts for more in ("a", "x", '"')}
    others |= {text[:-1] for text in texts} | {text[1:] for text in texts} | {""}
    assert all(map(rule.fullmatch, texts))
    assert not any(map(rule.fullmatch, others - set(texts)))


def test_what_texts_begin_with_stands_once() -> None:
    names = [f"/usr/share/names/{n:05}" for n in range(10_000)]
    rule = alternatives(names)
    assert rule.count("/usr/share/names/") == 1
    assert max(rule.count(f"/{n}") for n in range(10)) <= 1
    assert alternatives(random.Random(0).sample(names, len(names))) == rule


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS.keys())
def test_no_rule_becomes_longer(texts: list[str]) -> None:
    assert len(alternatives(texts)) <= len(" | ".join(map(literal, set(texts))))


def test_one_of_many(open_session: Open) -> None:
    names = [f"item {n * n} of {n}" for n in range(2000)]
    for found in values(open_session(draft=None), held({"enum": names})):
        assert found["a"] in names


ONE, NOT_ONE = {"a": [1, {"b": 0}]}, {"a": [True, {"b": 0}]}


@pytest.mark.parametrize(
    ("schemas", "constants"),
    [
        ([{"enum": [1, 0]}, {"enum": [True, 2, 0.0]}], ["0"]),
        ([{"enum": [1, True, 2]}, {"enum": [2, True]}], ["2", "true"]),
        ([{"enum": [1, 2.0]}, {"enum": [1.0, 2]}], ["1", "2.0"]),
        ([{"const": 0}, {"enum": [False, 0.0]}], ["0.0"]),
        ([{"enum": [ONE, 3]}, {"enum": [NOT_ONE, 3]}], ["3"]),
        ([{"const": {"a": 1, "b": 2}}, {"const": {"b": 2.0, "a": 1}}], ['{"a": 1, "b": 2}']),
        ([{"items": {"const": 1}}, {"items": {"enum": [True, 1]}, "minItems": 1}], ["[1]"]),
    ],
)
def test_constants_at_once(schemas: list[Any], constants: list[str]) -> None:
    """To Python, 1 equals True."""
    found = set(texts(gbnf(None, {"allOf": schemas, "maxItems": 1}), 50))
    assert {re.sub(r"(?<=\[|1) | $", "", text) for text in found} == set(constants)


@pytest.mark.parametrize(
    "schema",
    [
        {"const": 0, "allOf": [{"const": False}]},
        {"enum": [1], "allOf": [{"enum": [True]}]},
        {"const": ONE, "enum": [NOT_ONE]},
        {"$ref": "#/$defs/a", "const": 1, "$defs": {"a": {"const": True}}},
    ],
)
def test_constants_that_are_none_at_once(schema: Any) -> None:
    with pytest.raises(ArgumentError, match=r"no value (is|has) both|none of its constants"):
        gbnf(None, schema)
