"""Checks a tool's JSON schema, and reduces it to what a grammar can express."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from specllama.requests.schema.check import MOST_REPEATED
from specllama.requests.schema.pattern import PatternError, pattern_rule
from specllama.server.error import ApiError

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}

# Any JSON value.
_ANYTHING: Mapping[str, Any] = {}

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_DEEPEST = 32
_MOST_PARTS = 2000
_LONGEST_PATTERN = 2000
"""Most bytes of a pattern's GBNF rule."""
_MOST_IN_PATTERN = 2000
"""Repetitions of a pattern, nested ones multiplied; llama.cpp does not read so many."""
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([^/~%]+)")
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def expressible(schema: Any, field: str) -> dict[str, Any]:
    """Return a schema of objects that a grammar can enforce. It allows all that the given schema
    allows, and little more. Raises ApiError, with the name of the field, if the given value is not
    a schema.

    These are left out: bounds of numbers that are not integers, patterns that cannot become a
    grammar, large bounds of lengths, references to anything but the schema's definitions, and
    combinations of schemas other than anyOf and oneOf. A very long schema is left out as a whole.
    """
    if not isinstance(schema, dict):
        raise ApiError(400, f"{field} must be a JSON schema, an object.", param=field)
    try:
        found = _Reader(schema, field).read()
    except _TooLongError:
        return dict(ANY_OBJECT)
    return found if found.get("type") == "object" or "$ref" in found else dict(ANY_OBJECT)


def without_lengths(schema: Any) -> Any:
    """Return a schema, as returned by `expressible`, without its bounds of lengths."""
    if isinstance(schema, list):
        return [without_lengths(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: value if key == "enum" else without_lengths(value)
        for key, value in schema.items()
        if not (key in _LENGTHS and isinstance(value, int))
    }


class _TooLongError(Exception):
    pass


class _Reader:
    def __init__(self, schema: Mapping[str, Any], field: str) -> None:
        self._schema = schema
        self._field = field
        self._n_parts = 0
        self._definitions: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        if self._schema.get("type", "object") != "object":
            self._refuse(f"{self._field}.type", '"object"')
        for key in ("$defs", "definitions"):
            self._definitions |= self._object(self._schema, key, self._field)
        root = self._part(self._schema, self._field, 0)
        named = {
            name: self._part(one, f"{self._field}.$defs.{name}", 0)
            for name, one in self._definitions.items()
        }
        return root | ({"$defs": named} if named else {})

    def _part(self, schema: Any, field: str, depth: int) -> dict[str, Any]:
        self._n_parts += 1
        if self._n_parts > _MOST_PARTS:
            raise _TooLongError
        if depth > _DEEPEST:
            self._refuse(self._field, f"a schema that nests at most {_DEEPEST} deep")
        if schema is True:
            return dict(_ANYTHING)
        if not isinstance(schema, dict):
            self._refuse(field, "a JSON schema, an object")
        readers = (
            self._reference, self._union, self._all_of, self._types, self._constant,
            self._properties, self._list, self._string, self._integer,
        )  # fmt: skip
        for reader in readers:
            if (found := reader(schema, field, depth)) is not None:
                return found
        kind = schema.get("type")
        return dict(_ANYTHING) if kind is None else {"type": kind}

    def _reference(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        if "$ref" not in schema:
            return None
        reference = schema["$ref"]
        if not isinstance(reference, str):
            self._refuse(f"{field}.$ref", "a string")
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            return dict(_ANYTHING)
        if found[1] not in self._definitions:
            self._refuse(f"{field}.$ref", "the name of one of the schema's definitions")
        return {"$ref": f"#/$defs/{found[1]}"}

    def _union(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        for key in ("anyOf", "oneOf"):
            if key in schema:
                parts = self._parts(schema[key], f"{field}.{key}", depth)
                return dict(_ANYTHING) if dict(_ANYTHING) in parts else {"anyOf": parts}
        return None

    def _all_of(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        if "allOf" not in schema:
            return None
        parts = self._parts(schema["allOf"], f"{field}.allOf", depth)
        return parts[0] if len(parts) == 1 and "properties" not in schema else dict(_ANYTHING)

    def _types(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        kinds = schema.get("type")
        for kind in kinds if isinstance(kinds, list) and kinds else [kinds]:
            if kind is not None and (not isinstance(kind, str) or kind not in _TYPES):
                self._refuse(f"{field}.type", "a JSON type")
        if not isinstance(kinds, list):
            return None
        # Constants need no type beside them.
        some = [{}] if "enum" in schema or "const" in schema else [{"type": one} for one in kinds]
        rest = {key: value for key, value in schema.items() if key != "type"}
        parts = [self._part(rest | one, field, depth + 1) for one in some]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _constant(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        if "const" in schema:
            values = [schema["const"]]
        elif "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, list) or not values:
                self._refuse(f"{field}.enum", "a list of values, not empty")
        else:
            return None
        return {"enum": values}

    def _properties(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        properties = {
            name: self._part(one, f"{field}.properties.{name}", depth + 1)
            for name, one in self._object(schema, "properties", field).items()
        }
        required = schema.get("required") or []  # some clients write null for an empty list
        if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
            self._refuse(f"{field}.required", "a list of names")
        more = schema.get("additionalProperties")
        if more is not None and not isinstance(more, bool):
            more = self._part(more, f"{field}.additionalProperties", depth + 1)
        if schema.get("type") not in (None, "object"):
            return None
        if "*" in properties:  # the converter's own key, for further properties
            return dict(ANY_OBJECT)
        if properties:
            kept = {"type": "object", "properties": properties, "required": required}
            return kept | ({"additionalProperties": more} if isinstance(more, dict) else {})
        if isinstance(more, dict) or more is False:
            return {"type": "object", "additionalProperties": more}
        if "properties" in schema:
            return {"type": "object", "properties": {}}
        return None

    def _list(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        bounds = self._bounds(schema, "minItems", "maxItems", field)
        tuples = [
            self._parts(schema[key], f"{field}.{key}", depth)
            for key in ("prefixItems", "items")
            if isinstance(schema.get(key), list)
        ]
        items = schema.get("items")
        if not isinstance(items, list) and items is not None and items is not False:
            items = self._part(items, f"{field}.items", depth + 1)
        if schema.get("type") not in (None, "array"):
            return None
        if tuples:
            return {"type": "array", "prefixItems": tuples[0]}
        if isinstance(items, dict):
            return {"type": "array", "items": items} | bounds
        return {"type": "array", "items": dict(_ANYTHING)} | bounds if bounds else None

    def _string(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        bounds = self._bounds(schema, "minLength", "maxLength", field)
        pattern, kind = schema.get("pattern"), schema.get("format")
        for name, value in (("pattern", pattern), ("format", kind)):
            if value is not None and not isinstance(value, str):
                self._refuse(f"{field}.{name}", "a string")
        if schema.get("type") != "string":
            return None
        if pattern is not None and _has_rule(pattern):
            return {"type": "string", "pattern": pattern}
        return {"type": "string"} | ({"format": kind} if kind else bounds)

    def _integer(self, schema: dict[str, Any], field: str, depth: int) -> dict[str, Any] | None:
        bounds = {name: schema[name] for name in _BOUNDS if schema.get(name) is not None}
        for name, value in bounds.items():
            if not isinstance(value, (int, float)):
                self._refuse(f"{field}.{name}", "a number")
        return {"type": "integer"} | bounds if schema.get("type") == "integer" else None

    def _bounds(self, schema: dict[str, Any], low: str, high: str, field: str) -> dict[str, int]:
        given = {name: schema[name] for name in (low, high) if schema.get(name) is not None}
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                self._refuse(f"{field}.{name}", "a whole number, 0 or more")
        if len(given) == 2 and given[low] > given[high]:
            self._refuse(f"{field}.{high}", f"at least {low}")
        return {name: value for name, value in given.items() if value <= MOST_REPEATED}

    def _parts(self, schemas: Any, field: str, depth: int) -> list[dict[str, Any]]:
        if not isinstance(schemas, list) or not schemas:
            self._refuse(field, "a list of JSON schemas, not empty")
        return [self._part(one, f"{field}[{i}]", depth + 1) for i, one in enumerate(schemas)]

    def _object(self, schema: Mapping[str, Any], name: str, field: str) -> dict[str, Any]:
        value = schema.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._refuse(f"{field}.{name}", "an object of JSON schemas")
        return value

    def _refuse(self, field: str, wanted: str) -> NoReturn:
        raise ApiError(400, f"{field:.200} must be {wanted}.", param=f"{field:.200}")


def _has_rule(pattern: str) -> bool:
    try:
        rule = pattern_rule(pattern)
    except PatternError:
        return False
    bounds = [max(int(number), 1) for number in re.findall(r"\d{1,9}(?=[,}])", pattern)]
    return len(rule) <= _LONGEST_PATTERN and math.prod(bounds) < _MOST_IN_PATTERN
