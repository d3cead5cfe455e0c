"""The values that the grammar of a JSON schema allows."""

from __future__ import annotations

import datetime
import itertools
import json
import uuid
from typing import Any

import pytest
from grammar_draws import accepts, allows, of_schema, values
from specllama import ArgumentError
from specllama.requests.schema.grammar import schema_grammar

COLORS = {"type": "string", "enum": ["red", "blue"]}
CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
    "required": ["kind"],
}
DOG = {
    "type": "object",
    "properties": {"kind": {"const": "dog"}, "barks": {"type": "boolean"}},
    "required": ["kind"],
}
REFERRED = {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]}
NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
}


UUID = "f81d4fae-7dec-{}1d0-a765-00a0c91e6bf6"


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "may_come", "may_not"),
    [
        # Properties: in the schema's order, and no others unless it allows them.
        (obj(a={}, b={}), [{}, {"a": 1}, {"a": 1, "b": 2}], [{"c": 1}, {"b": 1, "a": 2}]),
        (obj(), [{}], [{"a": 1}]),
        (obj(a={}) | {"additionalProperties": True}, [{"a": 1, "c": 2}], []),
        (obj(a={}) | {"additionalProperties": COLORS}, [{"c": "red"}], [{"c": 1}]),
        (obj(a={}) | {"required": ["b"]}, [{"b": 1}, {"a": 1, "b": 1}], [{}, {"b": 1, "c": 1}]),
        ({"type": "object"}, [{}, {"x": {"y": [1]}}], [[], 1]),
        ({"properties": {"a": {"type": "null"}}}, [{"a": None}, {"z": 1}, 5], [{"a": 1}]),
        (
            obj(a={}) | {"anyOf": [{"required": ["a"]}, {"properties": {"b": {}}}]},
            [{"a": 1}, {"b": 1}],
            [{"c": 1}],
        ),
        (
            {"allOf": [CAT, obj(name={"type": "string"})]},
            [{"kind": "cat", "lives": 9, "name": "x"}],
            [{"kind": "cat", "z": 1}, {"name": "x"}],
        ),
        (obj(a={}) | {"patternProperties": {"^x": {"type": "null"}}}, [{"x": None}], [{"x": 1}]),
        (
            {
                "type": "object",
                "patternProperties": {"^[a-z]+$": {"type": "string"}},
                "additionalProperties": False,
            },
            [{}, {"web": "x", "db": "y"}],
            [{"Web": "x"}, {"web": 1}],
        ),
        # Names and number of properties.
        (
            {"type": "object", "propertyNames": COLORS, "additionalProperties": {"const": 1}},
            [{}, {"red": 1}, {"red": 1, "blue": 1}],
            [{"green": 1}, {"red": "x"}],
        ),
        (
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/c"},
                "additionalProperties": {"type": "integer"},
                "minProperties": 1,
                "$defs": {"c": COLORS},
            },
            [{"blue": 1}, {"red": 1, "blue": 2}],
            [{}, {"green": 1}],
        ),
        ({"type": "object", "propertyNames": {"pattern": "^a"}}, [{"ab": 1}], [{"b": 1}]),
        ({"type": "object", "propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
        (
            obj(a={}, b={}, c={}) | {"minProperties": 2, "additionalProperties": False},
            [{"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}],
            [{}, {"b": 1}],
        ),
        (
            obj(a={}, b={}, c={}) | {"maxProperties": 1, "additionalProperties": False},
            [{}, {"b": 1}],
            [{"a": 1, "c": 1}],
        ),
        (
            obj(a={}) | {"minProperties": 1, "additionalProperties": True},
            [{"a": 1}, {"z": 1}],
            [{}],
        ),
        # Choices.
        (REFERRED | {"$defs": {"cat": CAT, "dog": DOG}}, [{"kind": "dog", "barks": True}], [{}]),
        ({"oneOf": [{"const": 1}, {"const": "1"}, {"enum": [2, 3]}]}, [1, "1", 3], [4]),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, [None, 1], ["x"]),
        ({"type": ["integer", "null"], "minimum": 3}, [None, 3], [2]),
        ({"anyOf": [{"const": 5}, {"type": "integer", "minimum": 2, "maximum": 1}]}, [5], [1, 2]),
        ({"enum": [1, "a", None, {"b": [True]}]}, [1, "a", None, {"b": [True]}], [True, "b", {}]),
        ({"not": {"type": ["string", "null"]}}, [1, {}], ["x", None]),
        ({"if": True, "then": {"type": "null"}, "else": {"type": "string"}}, [None], ["x"]),
        # Dependencies.
        (
            {"dependentRequired": {"a": ["b"]}},
            [{}, {"b": 1}, {"a": 1, "b": 2}, 7],
            [{"a": 1}],
        ),
        ({"dependencies": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 2}], [{"a": 1}]),
        # Numbers.
        ({"type": "number", "minimum": 0.5, "maximum": 2}, [0.5, 1, 1.99], [0.49, 2.01, -1]),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, [0.1, 0.5], [0, 0.51]),
        ({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1.5}, [1.1], [1, 1.5]),
        ({"type": "number", "multipleOf": 0.25}, [0.25, -3, 1.75], [0.1]),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True, "maximum": 6.5}, [6], [5, 7]),
        ({"type": "integer", "maximum": 2**63 - 1}, [2**53, -(2**60)], [2**63, 10**30]),
        ({"type": "integer", "minimum": -(10**400), "maximum": 1e300}, [0, -1], [1.5]),
        # Texts.
        (
            {"type": "string", "minLength": 1, "maxLength": 2.0},
            ["a", "\u540d\U0001f600"],
            ["", "abc"],
        ),
        ({"type": "string", "pattern": "^https?://"}, ["http://x", "https://"], ["ftp://x"]),
        ({"type": "string", "pattern": "b"}, ["abc"], ["ac"]),
        ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a", "aa"], ["aaa", "b"]),
        ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]}, ["ab", "ba"], ["a"]),
        ({"type": "string", "pattern": r"^(?<y>\d{2})\/[\w-]+$"}, ["24/a-b"], ["\u0664\u0664/a"]),
        # Lists.
        ({"type": "array", "items": COLORS, "minItems": 1, "maxItems": 2}, [["red"]], [[], ["x"]]),
        ({"type": "array", "prefixItems": [COLORS], "items": False}, [["red"]], [[1], ["red", 1]]),
        ({"type": "array", "items": [COLORS], "additionalItems": False}, [["red"]], [["red", 1]]),
        ({"type": "array", "contains": {}, "minContains": 2}, [[1, 2]], [[1]]),
        # References.
        ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, [{"v": 1, "next": {}}], [{"x": 1}]),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": COLORS}}, ["red"], ["x"]),
        (obj(a=COLORS, b={"$ref": "#/properties/a"}), [{"b": "red"}], [{"b": 1}]),
        (obj(a={"anyOf": [{"$ref": "#"}, {"type": "null"}]}), [{"a": {"a": None}}], [{"a": 1}]),
        ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "const": 1}}}, [1], [2]),
        (
            {"$id": "https://x.org/s", "$ref": "t", "$defs": {"t": {"$id": "t", "const": 1}}},
            [1],
            [2],
        ),
        (
            {"$ref": "#/$defs/n", "maximum": 3, "$defs": {"n": {"type": "integer", "minimum": 2}}},
            [2, 3],
            [1, 4],
        ),
        ({"const": {"$ref": 5, "a": {"$ref": "x"}}}, [{"$ref": 5, "a": {"$ref": "x"}}], [1]),
    ],
)  # fmt: skip
def test_a_schema_allows_valid_and_forbids_invalid_values(
    schema: Any, may_come: list[Any], may_not: list[Any]
) -> None:
    assert schema_grammar(schema).left == ()
    for value in may_come:
        assert allows(schema, value), value
    for value in may_not:
        assert not allows(schema, value), value


@pytest.mark.parametrize("anything", [{}, True, {"title": "A", "x-order": 1}, {"allOf": [True]}])
def test_schemas_without_constraints_allow_any_value(anything: Any) -> None:
    for value in (None, 1.5, "\u00e9", [{}], {"a": {"b": []}}):
        assert allows(anything, value)


def test_one_space_is_allowed_between_json_tokens() -> None:
    grammar = of_schema(obj(a={"type": "integer"}) | {"required": ["a"]})
    for text in ('{"a":1}', '{"a": 1}', '{ "a" : 1 }'):
        assert accepts(grammar, text)
    for text in (' {"a":1}', '{"a":1} ', '{"a":  1}', '{\n"a":1}', '{"a":\t1}'):
        assert not accepts(grammar, text)


def test_escapes_count_as_one_character() -> None:
    """A character may be a pair of escapes, but not half a pair."""
    grammar = of_schema({"type": "string", "maxLength": 2})
    for text in (r'"\u00e9\n"', r'"\ud83d\ude00a"', '"\U0001f600a"', r'"\"\\"'):
        assert accepts(grammar, text)
    for text in (r'"\ud83d"', r'"\ud83dab"', r'"\ude00"', r'"\ud83d\ude00ab"', '"\n"', r'"\x"'):
        assert not accepts(grammar, text)


def test_additional_properties_cannot_repeat_a_listed_name() -> None:
    grammar = of_schema(obj(a={"type": "null"}) | {"additionalProperties": {"type": "integer"}})
    assert accepts(grammar, '{"b": 1}')
    assert accepts(grammar, r'{"\n": 1}')
    for text in ('{"a": 1}', r'{"\u0061": 1}', r'{"a": null, "\u0061": 1}'):
        assert not accepts(grammar, text)


@pytest.mark.parametrize("low", [None, -12, -1, 0, 1, 7, 99, 105])
@pytest.mark.parametrize("high", [None, -3, 0, 9, 10, 100, 1200])
def test_integer_bounds_are_exact(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        return
    bounds = {"minimum": low, "maximum": high}
    schema = {"type": "integer"} | {key: one for key, one in bounds.items() if one is not None}
    grammar = of_schema(schema)
    for n in itertools.chain(range(-130, 130), (999, 1000, 1200, 1201)):
        inside = (low is None or n >= low) and (high is None or n <= high)
        assert accepts(grammar, str(n)) == inside, n


@pytest.mark.parametrize(
    ("form", "parse"),
    [
        ("date", datetime.date.fromisoformat),
        ("time", lambda text: datetime.datetime.fromisoformat(f"2000-01-01T{text}")),
        ("date-time", datetime.datetime.fromisoformat),
        ("uuid", uuid.UUID),
        ("uuid4", lambda text: uuid.UUID(text).version == 4 or int("x")),
        ("uuid7", lambda text: uuid.UUID(text).version == 7 or int("x")),
    ],
)
def test_generated_formats_can_be_parsed(form: str, parse: Any) -> None:
    found = values({"type": "string", "format": form}, 100, strict=True)
    assert len(found) > 50
    for text in found:
        fraction = text.partition(".")[2]
        digits = len(fraction) - len(fraction.lstrip("0123456789"))
        # Before Python 3.11, a fraction had three or six digits, and there was no Z.
        full = text.replace(f".{fraction[:digits]}", f".{fraction[:digits]:0<6}").replace(
            "Z", "+00:00"
        )
        parse(full if "." in text or "Z" in text else text)


@pytest.mark.parametrize(
    ("form", "may_come", "may_not"),
    [
        (
            "date",
            ["2024-02-29", "2000-02-29", "2023-12-31"],
            ["2023-02-29", "1900-02-29", "4655-11-31"],
        ),
        ("time", ["23:59:59Z", "00:00:00.5+01:00"], ["24:00:00Z", "12:60:00Z", "12:00:00"]),
        (
            "uuid4",
            ["f81d4fae-7dec-41d0-a765-00a0c91e6bf6"],
            ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"],
        ),
        ("email", ["a.b@c.org"], ["a", "@c.org"]),
        ("base64", ["", "aGk=", "aGkh"], ["aGk", "=aGk"]),
        ("duration", ["P1Y2M3DT4H", "PT5S", "P3W"], ["P", "1D", "PT"]),
        ("ipv4", ["127.0.0.1"], ["256.0.0.1"]),
    ],
)
def test_formats_allow_valid_and_forbid_invalid_texts(
    form: str, may_come: list[str], may_not: list[str]
) -> None:
    schema = {"type": "string", "format": form}
    assert all(allows(schema, text) for text in may_come)
    assert not any(allows(schema, text) for text in may_not)


@pytest.mark.parametrize(
    ("pattern", "may_come", "may_not"),
    [
        # From zod.
        (r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
         ["a.b@c-d.org", "a@b.co"], [".a@b.co", "a..b@c.co", "a.@b.co", "a@b"]),
        ("^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$",
         ["", "aGk=", "aGkh"], ["aGk", "a=Gk"]),
        # From pydantic.
        (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", ["1", "-0.5", ".5", "7."], ["", "-", ".", "+."]),
        (r"^\s*(\d*\.?\d+)\s*(\w+)?", ["1.5 kB", "7"], ["", "kB"]),
    ],
)  # fmt: skip
def test_well_known_patterns_are_enforced(
    pattern: str, may_come: list[str], may_not: list[str]
) -> None:
    schema = {"type": "string", "pattern": pattern}
    of_schema(schema, strict=True)
    assert all(allows(schema, text) for text in may_come)
    assert not any(allows(schema, text) for text in may_not)


def test_an_enum_of_many_constants_is_enforced() -> None:
    names = [f"item {n * n} of {n}" for n in range(2000)]
    grammar = of_schema({"enum": names})
    assert all(accepts(grammar, json.dumps(name)) for name in names[::100])
    assert not accepts(grammar, '"item 4"')


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (False, "json_schema is false, so no value follows it."),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "'a' is unsatisfiable"),
        (
            {"type": "integer", "minimum": 2, "maximum": 1},
            "minimum (2) is greater than maximum (1)",
        ),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength (3) is greater than"),
        ({"type": "string", "enum": [1]}, "incompatible types"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "incompatible types"),
    ],
)
def test_schemas_that_allow_no_value_are_refused(schema: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        schema_grammar(schema)
    assert message in str(caught.value)
    assert str(caught.value).startswith("json_schema ")
