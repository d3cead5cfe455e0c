"""JSON schemas that are repaired, only partly enforced, or refused."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections import ChainMap
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from grammar_draws import accepts, allows, of_prepared
from specllama import ArgumentError
from specllama.requests.grammar import constraint
from specllama.requests.schema.grammar import schema_grammar


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "may_come", "may_not"),
    [
        ({"type": "string", "maxLength": 2.0}, ["ab"], ["abc"]),
        ({"type": "string", "maxLength": "2"}, ["ab"], ["abc"]),
        ({"type": "string", "minLength": -1}, [""], [1]),
        ({"type": "integer", "minimum": "0"}, [0], [-1]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0]),
        ({"type": "integer", "const": 2.0}, [2], [3]),
        ({"enum": [2.0, 3]}, [3], [4]),
        (obj(a=False, b={}), [{"b": 1}], [{"a": 1}]),
        ({"type": "object", "properties": []}, [{}], [{"a": 1}]),
        (obj(a={"type": "null", "required": True}, b={}), [{"a": None}], [{"b": 1}]),
        (obj(a={"type": "null", "required": False}), [{}, {"a": None}], []),
        (obj(a={}) | {"required": "a"}, [{"a": 1}], [{}]),
        (obj(a={}) | {"required": None, "additionalProperties": None}, [{}], [{"b": 1}]),
        ({"type": "any"}, [1, "x"], []),
        ({"type": ""}, [1, "x"], []),
        ({"type": "float"}, [1.5], ["x"]),
        ({"type": "int"}, [1], [1.5]),
        ({"type": "str"}, ["x"], [1]),
        ({"type": "STRING"}, ["x"], [1]),
        ({"type": "dict"}, [{}], [1]),
        ({"type": ["int", "none"]}, [1, None], ["x"]),
        ({"type": "string", "anyOf": []}, ["x"], [1]),
        ({"type": "integer", "minimum": None, "enum": None}, [1], ["x"]),
        ({"type": "array", "items": {"type": "int"}, "uniqueItems": False}, [[1, 1]], [["x"]]),
    ],
)
def test_slightly_wrong_schemas_are_repaired(
    schema: Any, may_come: list[Any], may_not: list[Any]
) -> None:
    assert schema_grammar(schema, strict=True).warnings == []
    for value in may_come:
        assert allows(schema, value), value
    for value in may_not:
        assert not allows(schema, value), value


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, "json_schema has type 'strin', which is not a type."),
        ({"type": 5}, "json_schema has type 5, which is not a type."),
        ({"properties": {"a": 1}}, "json_schema has 1 instead of a schema."),
        ({"properties": [1]}, r"json_schema has properties \[1\], which must be an object"),
        ({"anyOf": {}}, "json_schema has anyOf {}, which must be a list of schemas."),
        ({"enum": "a"}, "json_schema has enum 'a', which must be a list of values."),
        ({"pattern": 3}, "json_schema has pattern 3, which must be a string."),
        ({"minimum": "x"}, "json_schema has minimum 'x', which must be a number."),
        ({"minimum": True}, "json_schema has minimum True, which must be a number."),
        ({"maxLength": 1.5}, "json_schema has maxLength 1.5, which must be a whole number"),
        ({"maxLength": -1}, "json_schema has maxLength -1, which must be a whole number"),
        ({"multipleOf": 0}, "json_schema has multipleOf 0, which must be more than 0."),
        ({"const": {1}}, "json_schema has a set, which is not a JSON value."),
        ({"const": float("nan")}, "json_schema cannot be read: NaN is not a JSON number."),
        ({"const": 10**5000}, "json_schema .*number that is too large"),
        ({"enum": ["\ud83d"]}, "json_schema has a lone surrogate, which is not a character."),
        ('{"const": 1%s}' % ("0" * 5000), "json_schema is not valid JSON: .* too large a number"),
        ("{", "json_schema is not valid JSON"),
        ("5", "json_schema must be a JSON object, not 5."),
        (5, "json_schema must be a JSON object, not 5."),
    ],
)
def test_unusable_schemas_are_refused(schema: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        constraint(None, schema, None)


LEFT = [
    ({"type": "array", "items": {}, "uniqueItems": True}, '"uniqueItems"', [1, 1]),
    ({"type": "array", "contains": {"const": 1}}, '"contains"', [2]),
    ({"not": {"const": 1}}, '"not"', 1),
    ({"if": {"const": 1}, "then": {"type": "string"}}, '"if"', 1),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, '"oneOf"', 3),
    ({"type": "string", "pattern": "^(?=a)b$"}, '"pattern": "^(?=a)b$"', "x"),
    ({"type": "string", "pattern": r"^(a)\1$"}, '"pattern"', "x"),
    ({"type": "string", "pattern": "("}, '"pattern": "("', "x"),
    ({"$ref": "#/$defs/x"}, '"$ref": "#/$defs/x"', 1),
    ({"$ref": "https://example.org/s.json"}, '"$ref": "https://example.org/s.json"', 1),
    ({"$dynamicRef": "#n"}, '"$dynamicRef"', 1),
    ({"type": "object", "propertyNames": {"format": "uuid"}}, '"propertyNames"', {"a": 1}),
    ({"type": "object", "patternProperties": {"a": {"const": 1}, "ab": {}}}, '"patternProperties"',
     {"a": 2}),
    ({"type": "number", "multipleOf": 0.123456789}, '"multipleOf": 0.123456789', 1),
    ({"type": "integer", "minimum": 10**400}, '"minimum"', 1),
    ({"const": 2**60 + 1}, '"const"', 1),
    ({"enum": []}, '"enum": []', 1),
    (obj(**{f"p{n}": {} for n in range(60)}) | {"minProperties": 30}, '"minProperties": 30', {}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "keyword", "value"), LEFT)
@pytest.mark.parametrize("inside", [False, True])
def test_keywords_that_cannot_be_enforced_are_named(
    schema: Any, keyword: str, value: Any, inside: bool
) -> None:
    whole = obj(a=schema) if inside else schema
    with pytest.raises(ArgumentError) as caught:
        schema_grammar(whole, strict=True)
    assert str(caught.value).startswith(f"json_schema has {keyword}")
    assert str(caught.value).endswith(", which cannot be enforced; leave it out.")
    grammar = schema_grammar(whole)
    assert any(one.startswith(keyword) for one in grammar.left)
    assert grammar.warnings[0] == f"{grammar.left[0]} is not enforced"
    text = json.dumps({"a": value} if inside else value)
    assert accepts(of_prepared(grammar.text), text)


@pytest.mark.parametrize(
    ("schema", "remark"),
    [
        ({"type": "string", "format": "color"}, "the format 'color' is not checked"),
        ({"type": "object", "minProperties": 2}, "for minProperties 2, equal names count, too"),
        (
            {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^(?=a)b$"}]},
            "texts with the pattern '^(?=a)b$' are not generated",
        ),
    ],
)
def test_harmless_keywords_only_give_a_warning(schema: Any, remark: str) -> None:
    grammar = schema_grammar(schema, strict=True)
    assert grammar.warnings == [remark]
    with pytest.warns(UserWarning, match=re.escape(f"json_schema: {remark}.")):
        constraint(None, schema, None)


def test_an_alternative_that_cannot_be_enforced_is_left_out() -> None:
    """As pydantic 2.13 writes it for a Decimal with a limit on its digits."""
    text = {
        "type": "string",
        "pattern": r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,6}0*$)\d{0,3}\.\d{0,2}0*$)",
    }
    decimal = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, text]}
    optional = {"anyOf": [*decimal["anyOf"], {"type": "null"}]}
    for schema in (decimal, optional):
        assert allows(schema, 1.5)
        assert not allows(schema, "1.5")
    # Without another alternative, the value is not constrained.
    only = {"anyOf": [text, {"type": "null"}]}
    assert schema_grammar(only).left
    assert allows(only, "1.5")


@pytest.mark.parametrize("kind", [MappingProxyType, ChainMap])
def test_schemas_can_be_any_mapping(kind: Callable[[Any], Any]) -> None:
    inner = kind({"enum": [1]})
    schema = kind({"type": "object", "properties": kind({"a": inner})})
    assert schema_grammar(schema) == schema_grammar(obj(a={"enum": [1]}))


def test_a_type_as_schema_without_pydantic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class Point:
        x: int

    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(ArgumentError, match=r"Point.*pip install pydantic"):
        constraint(None, Point, None)
