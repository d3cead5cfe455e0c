"""JSON schemas that would take too long are refused or relaxed quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from grammar_draws import drawn, of_prepared
from specllama import ArgumentError
from specllama.requests.schema.grammar import schema_grammar

VALUES = [f"value number {n * n} of {n}" for n in range(20_000)]
ENUM = {"$defs": {"e": {"enum": VALUES}}}
REF = {"$ref": "#/$defs/e"}


def laughs(around: Callable[[Any], Any], n: int = 100) -> dict[str, Any]:
    """Definitions that each refer twice to the next one."""
    definitions = {f"{i}": around({"$ref": f"#/$defs/{i + 1}"}) for i in range(n)}
    return {"$ref": "#/$defs/0", "$defs": definitions | {f"{n}": {"type": "string"}}}


def nested(around: Callable[[Any], Any], n: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(n):
        schema = around(schema)
    return schema


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


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": VALUES},
        {"type": "array", "prefixItems": [REF] * 6000, "maxItems": 2} | ENUM,
        laughs(lambda one: {"type": "array", "prefixItems": [one, one], "maxItems": 1}),
        laughs(lambda one: {"type": "object", "properties": {"a": one, "b": one}}),
        nested(lambda one: {"type": "object", "properties": {"a": one}}, 120),
        nested(lambda one: {"type": "array", "items": one}, 240),
        nested(lambda one: {"anyOf": [one, {"type": "null"}]}, 40),
        {"type": "string", "pattern": "^(((x?){8}){8}){8}$"},
        {"type": "string", "pattern": "((((((a?){30}){30}){30}){30}){30}){30}"},
        {"type": "string", "pattern": f"^(a{{1,{'9' * 5000}}})$"},
        {"type": "string", "pattern": "^(.*a.*){20}$", "minLength": 5, "maxLength": 1000},
        {"type": "string", "maxLength": 10**12},
        {"type": "array", "items": {"const": 1}, "maxItems": 10**12},
        {"type": "object", "properties": {f"p{n}": {"type": "null"} for n in range(1024)}},
        {"type": "object", "patternProperties": {f"^x{n}_.*{n}$": {} for n in range(300)}},
    ],
)
def test_large_schemas_within_the_limits_are_accepted(schema: Any) -> None:
    text = drawn(of_prepared(schema_grammar(schema).text), 0, most=30)
    assert text is None or text
