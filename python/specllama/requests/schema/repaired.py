"""Repairs JSON schemas that have errors but a clear meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: Mapping[str, str | None] = {
    "object": "object", "dict": "object", "map": "object",
    "array": "array", "list": "array", "tuple": "array", "set": "array",
    "string": "string", "str": "string", "text": "string",
    "number": "number", "float": "number", "double": "number", "decimal": "number",
    "integer": "integer", "int": "integer", "long": "integer",
    "boolean": "boolean", "bool": "boolean",
    "null": "null", "none": "null", "nil": "null",
    "any": None, "": None,
}  # fmt: skip
"""The types of JSON schema by commonly used names; None: any type."""

_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
    "minContains", "maxContains",
)  # fmt: skip
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS = frozenset({
    *_COUNTS, *_BOUNDS, "$ref", "$dynamicRef", "$recursiveRef", "type", "const", "enum", "allOf",
    "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
    "dependencies", "properties", "patternProperties", "additionalProperties", "propertyNames",
    "unevaluatedProperties", "required", "items", "prefixItems", "additionalItems", "contains",
    "unevaluatedItems", "uniqueItems", "pattern", "format",
})  # fmt: skip
"""Keywords that restrict values. Others only describe them, or are unknown."""

_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_BY_NAME = (
    "properties", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies",
)  # fmt: skip
_EXACT = 2**53
"""Up to this number, doubles represent all integers exactly; llguidance reads numbers as
doubles."""

_LARGEST = 2**62
"""The largest bound that llguidance supports."""


class SchemaError(Exception):
    """Part of a schema cannot be read. The text completes "it has ..."."""


def repaired(schema: Mapping[str, Any], left: Callable[..., None]) -> dict[str, Any]:
    """Return a repaired schema. Schemas inside it are not repaired.

    Counts become integers, bounds numbers, other names of types those of JSON schema, and keywords
    of older drafts those of 2020-12. Keywords that do not restrict values are left out.

    Args:
        schema: The schema as given by the user or client.
        left: Called with a keyword, optionally with its value, that restricts values but is left
            out.

    Raises:
        SchemaError: The meaning is not clear.
    """
    found = {
        key: one
        for key, one in schema.items()
        if key in _KEYWORDS and (one is not None or key == "const")
    }
    for key in _COUNTS:
        if key in found:
            found[key] = _count(key, found[key])
    for key in _BOUNDS:
        if isinstance(found.get(key), bool) and key.startswith("exclusive"):
            _repair_old_bound(found, key)
        elif key in found:
            _repair_bound(found, key, left)
    _repair_excluded(found)
    if "type" in found:
        _repair_types(found)
    if found.get("enum") == []:
        left("enum", [])
        del found["enum"]
    if found.get("uniqueItems") is not True:
        found.pop("uniqueItems", None)
    for key in _BY_NAME:
        if found.get(key) == []:
            found[key] = {}
        _need(found, key, dict, "an object of schemas")
    for key in _LISTS:
        _need(found, key, list, "a list of schemas")
        if found.get(key) == [] and key != "prefixItems":
            del found[key]
    _need(found, "enum", list, "a list of values")
    _need(found, "pattern", str, "a string")
    _need(found, "format", str, "a string")
    _repair_required(found)
    if isinstance(found.get("items"), list):  # before 2020-12
        found["prefixItems"] = found["items"]
        found["items"] = found.get("additionalItems", True)
    found.pop("additionalItems", None)
    return found


def _need(schema: Mapping[str, Any], key: str, kind: type, what: str) -> None:
    if key in schema and not isinstance(schema[key], kind):
        raise SchemaError(f"{key} {schema[key]!r:.80}, which must be {what}")


def _number(key: str, value: Any) -> int | float:
    try:
        number = float(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not math.isfinite(number):
            raise ValueError
    except OverflowError:  # an int larger than any double
        return int(number)
    except (TypeError, ValueError):
        raise SchemaError(f"{key} {value!r:.80}, which must be a number") from None
    is_whole = isinstance(number, float) and number.is_integer()
    return int(number) if is_whole else number


def _count(key: str, value: Any) -> int:
    number = _number(key, value)
    if not isinstance(number, int) or (number < 0 and key.startswith("max")):
        raise SchemaError(f"{key} {value!r:.80}, which must be a whole number, 0 or more")
    return min(max(number, 0), 2**31)


def _repair_bound(schema: dict[str, Any], key: str, left: Callable[..., None]) -> None:
    number = schema[key] = _number(key, schema[key])
    if number == 0 and key == "multipleOf":
        raise SchemaError("multipleOf 0, which must be more than 0")
    if abs(number) <= _EXACT or key == "multipleOf":
        return
    if (number > 0) == key.lower().endswith("maximum"):
        nearest = float(min(abs(number), _LARGEST))
        nearest = nearest if nearest <= abs(number) else math.nextafter(nearest, 0)
        schema[key] = nearest if number > 0 else -nearest
    else:
        left(key, number)
        del schema[key]


def _repair_old_bound(schema: dict[str, Any], key: str) -> None:
    """In draft 4, exclusiveMinimum is a flag: the minimum itself is excluded."""
    bound = key.replace("exclusiveM", "m")
    if schema.pop(key) and bound in schema:
        schema[key] = _number(bound, schema.pop(bound))


def _repair_excluded(schema: dict[str, Any]) -> None:
    """llguidance wrongly allows an excluded integer if the other bound is less than 1 away. So a
    value next to it becomes the bound."""
    for bound, other, sign in (("Minimum", "Maximum", 1), ("Maximum", "Minimum", -1)):
        excluded = schema.get(f"exclusive{bound}")
        keys = (f"exclusive{other}", other.lower())
        distances = [
            sign * (schema[key] - excluded)
            for key in keys
            if key in schema and excluded is not None
        ]
        if isinstance(excluded, int) and 0 < min(distances, default=1) < 1:
            del schema[f"exclusive{bound}"]
            near = excluded + sign * min(distances) * 1e-9
            schema[bound.lower()] = sorted((near, schema.get(bound.lower(), near)))[sign > 0]


def _repair_types(schema: dict[str, Any]) -> None:
    given = schema.pop("type")
    kinds = []
    for one in given if isinstance(given, list) else [given]:
        if not isinstance(one, str) or one.lower() not in _TYPES:
            raise SchemaError(f"type {one!r:.80}, which is not a type")
        kinds.append(_TYPES[one.lower()])
    if kinds and None not in kinds:
        schema["type"] = list(dict.fromkeys(kinds))


def _repair_required(schema: dict[str, Any]) -> None:
    """Before draft 4, `required` was a flag of each property."""
    names = schema.pop("required", [])
    names = [names] if isinstance(names, str) else names
    names = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    names += (
        name
        for name, one in schema.get("properties", {}).items()
        if isinstance(one, Mapping) and one.get("required") is True
    )
    if names:
        schema["required"] = list(dict.fromkeys(names))
