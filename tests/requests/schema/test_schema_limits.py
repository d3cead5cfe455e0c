"""JSON schemas that would take too long are refused or relaxed quickly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from grammar_draws import accepts, of_schema
from specllama import ArgumentError
from specllama.requests.schema.grammar import schema_grammar

VALUES = [f"value number {n * n} of {n}" for n in range(20_000)]
ENUM = {"$defs": {"e": {"enum": VALUES}}}
REF = {"$ref": "#/$defs/e"}


def laughs(around: Callable[[Any], Any], n: int = 100) -> dict[str, Any]:
    """Definitions that each refer twice to the next one."""
    definitions = {f"{i}": around({"$ref": f"#/$defs/{i + 1}"}) for i in range(n)}
    return {"$ref": "#/$defs/0", "$defs": definitions | {f"{n}": {"type": "string"}}}


def wrapped(around: Callable[[Any], Any], inner: Any, n: int) -> Any:
    for _ in range(n):
        inner = around(inner)
    return inner


def nested(around: Callable[[Any], Any], n: int) -> Any:
    return wrapped(around, {"type": "string"}, n)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {f"p{n}": REF for n in range(6000)}} | ENUM, "1024 properties"),
        ({"prefixItems": [{**REF, "maximum": n} for n in range(6000)]} | ENUM, "400000 constants"),
        ({"anyOf": [REF] * 6000} | ENUM, "400000 constants"),
        ({"oneOf": [REF] * 6000} | ENUM, "400000 constants"),
        ({"allOf": [REF] * 6000} | ENUM, "400000 constants"),
        (laughs(lambda one: {"allOf": [one, one]}), "inside each other"),
        (laughs(lambda one: {"anyOf": [one, one]}), "20000 parts"),
        (laughs(lambda one: {"allOf": [one, one], "unevaluatedItems": False}), "20000 parts"),
        (laughs(lambda one: {"dependentSchemas": {"a": one, "b": one}}), "20000 parts"),
        ({"allOf": [{"anyOf": [{"type": "object", "required": [f"{n}{k}"]} for k in range(4)]}
                    for n in range(40)]}, "too large"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
         "inside each other"),
        ({"allOf": [{"type": "string", "pattern": f"[a-z]*{c}[a-z]{{{n}}}"}
                    for n, c in enumerate("abcdefghijklmnop", 1)]}, "8 patterns"),
        ({"type": "object", "required": [f"p{n}" for n in range(20_000)]}, "1024 properties"),
        (nested(lambda one: {"allOf": [one]}, 100), "inside each other"),
    ],
)  # fmt: skip
def test_schemas_that_would_take_too_long_are_refused(schema: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        schema_grammar(schema, strict=True)


NAMES = [f"p{n}" for n in range(1024)]
NINES = "9" * 5000


@pytest.mark.parametrize(
    ("schema", "allowed", "forbidden"),
    [
        ({"enum": VALUES}, VALUES[-1], "value number 2 of 7"),
        ({"type": "array", "prefixItems": [REF] * 6000, "maxItems": 2} | ENUM, VALUES[:2], ["x"]),
        (laughs(lambda one: {"type": "array", "prefixItems": [one, one], "maxItems": 1}),
         wrapped(lambda one: [one], "x", 100), [[], []]),
        (laughs(lambda one: {"type": "object", "properties": {"a": one, "b": one}}),
         wrapped(lambda one: {"b": one}, "x", 100), {"a": 1}),
        (nested(lambda one: {"type": "object", "properties": {"a": one}}, 120),
         wrapped(lambda one: {"a": one}, "x", 120), {"a": 1}),
        (nested(lambda one: {"type": "array", "items": one}, 240),
         wrapped(lambda one: [one], "x", 240), [1]),
        (nested(lambda one: {"anyOf": [one, {"type": "null"}]}, 40), "x", 1),
        ({"type": "string", "pattern": "^(((x?){8}){8}){8}$"}, "x" * 512, "x" * 513),
        ({"type": "string", "pattern": "((((((a?){30}){30}){30}){30}){30}){30}"}, "any", 1),
        ({"type": "string", "pattern": f"^(a{{1,{NINES}}})$"}, "a", 1),
        ({"type": "string", "pattern": "^(.*a.*){20}$", "minLength": 5, "maxLength": 1000},
         "a" * 20, "a" * 19),
        ({"type": "string", "maxLength": 10**12}, "x" * 1000, 1),
        ({"type": "array", "items": {"const": 1}, "maxItems": 10**12}, [1] * 1000, [1, 2]),
        ({"type": "object", "properties": {name: {"type": "null"} for name in NAMES}},
         dict.fromkeys(NAMES[::1023]), {NAMES[-1]: 1}),
        ({"type": "object", "patternProperties": {f"^x{n}_.*{n}$": {} for n in range(300)}},
         {"x7_7": 1}, [1]),
    ],
)  # fmt: skip
def test_large_schemas_within_the_limits_are_followed(
    schema: Any, allowed: Any, forbidden: Any
) -> None:
    grammar = of_schema(schema)
    assert accepts(grammar, json.dumps(allowed))
    assert not accepts(grammar, json.dumps(forbidden))
