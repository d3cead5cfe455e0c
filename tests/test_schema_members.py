"""JSON schemas: the members of objects, their names and their order."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from grammar_texts import texts
from schema_values import values
from specllama import SpecSession
from specllama.requests.grammar import gbnf
from specllama.requests.schema.members import members
from specllama.requests.schema.other_names import other_names

Open = Callable[..., SpecSession]

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}


TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([a-z][\w-]*)|(\[(?:[^\]\\]|\\.)*\]|[^" ])')


def as_regex(text: str, rules: dict[str, str]) -> str:
    """GBNF with the rules that it names, without blanks in its texts, as a regular expression."""
    pattern = ""
    for literal, name, rest in TOKEN.findall(text):
        pattern += re.escape(re.sub(r"\\(.)", r"\1", literal)) + rest
        pattern += f"(?:{as_regex(rules[name], rules)})" if name else ""
    return pattern


def added(rules: dict[str, str]) -> Callable[[str, str], str]:
    def named(name: str, rule: str) -> str:
        assert rules.setdefault(name, rule) == rule
        return name

    return named


@pytest.mark.parametrize("required", list(itertools.product([False, True], repeat=4)))
@pytest.mark.parametrize("n", range(5))
def test_each_choice_of_members(required: tuple[bool, ...], n: int) -> None:
    pairs = list(zip(['"a"', '"b"', '"c"', '"d"'], required, strict=True))[:n]
    rules = {"space": ""}
    named = added(rules)
    text = members(pairs, lambda part: named(f"rest-{len(rules)}", part))
    rule = re.compile(as_regex(text, rules))
    for chosen in itertools.product([False, True], repeat=n):
        names = [pair[1] for (pair, _), is_in in zip(pairs, chosen, strict=True) if is_in]
        complete = all(is_in or not must for (_, must), is_in in zip(pairs, chosen, strict=True))
        assert bool(rule.fullmatch(",".join(names))) == complete, (text, rules, names)
    for wrong in ("a,", ",a", "ab", "b,a", "a,,b", "a,a"):
        assert not rule.fullmatch(wrong), (text, rules)


NAMES = {
    "none": [],
    "empty": [""],
    "one": ["name"],
    "beginnings of each other": ["a", "ab", "abc", "b", "", "abd"],
    "marks of grammars": ["]", "^", "-", "a-z", "\\", '"', "[", "a]b", "\n", "\\n", "(|)"],
    "every script": ["\u540d\u524d", "\u540d", "\U0001f600", "\u00e9t\u00e9", "/", "\x7f"],
    "all that is escaped": list('"\\\b\f\n\r\t'),
    "unspeakable": ["\x01", "a\x1f"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
def test_other_names_are_all_but_these(names: list[str]) -> None:
    rules: dict[str, str] = {}
    rule = re.compile(as_regex(other_names(names, added(rules)), rules))
    others = {name + more for name in names for more in ("a", "]", '"', "\n", "\\", "\u00e9")}
    others |= {name[:-1] for name in names} | {name[1:] for name in names} | {"", "x", "-", "/"}
    others = {name for name in others if not re.search(r"[\x01\x1f]", name)}
    for name in names:
        spelled = re.sub(r"(.)", lambda found: f"\\u{ord(found[1]):04x}", name, flags=re.DOTALL)
        assert not rule.fullmatch(json.dumps(name, ensure_ascii=False))
        assert not rule.fullmatch(f'"{spelled}"')
        assert not rule.fullmatch(json.dumps(name).replace("/", "\\/"))
    for name in others - set(names):
        assert rule.fullmatch(json.dumps(name, ensure_ascii=False)), name


def test_long_names_are_told_apart_by_their_beginnings() -> None:
    rules: dict[str, str] = {}
    text = other_names(["x" * 100 + "y"], added(rules))
    rule = re.compile(as_regex(text, rules))
    assert max(itertools.accumulate(text, lambda n, c: n + (c == "(") - (c == ")"), initial=0)) < 40
    assert not any(rule.fullmatch(f'"{"x" * n}y"') for n in (33, 100))
    assert all(rule.fullmatch(f'"{"x" * n}y"') for n in range(32))


@pytest.mark.parametrize(
    "required", [required for n in range(4) for required in itertools.combinations("abc", n)]
)
@pytest.mark.parametrize("more", [False, True, INTEGER])
def test_objects_parse_in_the_order_of_their_properties(
    required: tuple[str, ...], more: Any
) -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "null"}, "a": {"enum": [1]}, "c": {"type": "boolean"}},
        "required": list(required),
        "additionalProperties": more,
    }
    kinds = {"b": type(None), "a": int, "c": bool}
    found = [json.loads(text) for text in texts(gbnf(None, schema), 200)]
    for one in found:
        assert one.keys() >= set(required)
        described = [name for name in one if name in kinds]
        assert described == [name for name in kinds if name in one] == list(one)[: len(described)]
        assert all(type(one[name]) is kinds[name] for name in described)
        others = [value for name, value in one.items() if name not in kinds]
        assert not others or more is True or (more and {*map(type, others)} == {int})
    assert len({frozenset(one.keys() & kinds.keys()) for one in found}) == 2 ** (3 - len(required))
    assert any(one.keys() - kinds.keys() for one in found) == bool(more)


def test_another_property_is_not_called_like_one(open_session: Open) -> None:
    schema = {
        "type": "object",
        "properties": {"b": INTEGER, "bb": {"type": "null"}, "*": {"type": "boolean"}},
        "additionalProperties": TEXT,
    }
    kinds = {"b": int, "bb": type(None), "*": bool}
    drawn = map(json.loads, texts(gbnf(None, schema), 500))
    for found in [*drawn, *values(open_session(draft=None), schema)]:
        assert all(type(one) is kinds.get(name, str) for name, one in found.items())


def test_many_properties(open_session: Open) -> None:
    """Optional ones, and others beside them: neither their grammar nor reading it is long."""
    properties = {f"property_{n}": {"type": "null"} for n in range(500)}
    for more in (False, INTEGER):
        schema = {"type": "object", "properties": properties, "additionalProperties": more}
        assert len(gbnf(None, schema)) < 120 * len(properties)
        generation = open_session(draft=None).generate("x", json_schema=schema, max_tokens=8)
        assert generation.text.startswith("{")
