"""Checks a JSON schema before a grammar is made of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.schema.references import References

MOST_REPEATED = 65536
"""Most repetitions that a schema may ask for; a grammar with more could not be parsed."""

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_OBJECTS = ("properties", "$defs", "definitions", "patternProperties")
"""Keywords whose value is a schema, a list of schemas, or an object of schemas by name."""


def check(schema: Any, references: References) -> None:
    """Raise ArgumentError if a value has the wrong type, a reference leads nowhere, or a bound
    would fill the memory (a tuple is written out with all minItems items).

    Args:
        schema: A JSON value.
        references: The references of this schema.
    """
    parts, followed = [schema], dict[str, None]()
    while parts:
        part = parts.pop()
        if part is True:
            continue
        if not isinstance(part, dict):
            raise ArgumentError(f"{json.dumps(part):.80} stands where a schema must be")
        if "$ref" in part:
            target = references.target(part["$ref"])
            if part["$ref"] not in followed:
                followed[part["$ref"]] = None
                parts.append(target)
        _check_types(part)
        parts += _inner(part)
    for reference in followed:
        references.check(reference)


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in _OBJECTS:
        yield from schema.get(key, {}).values()
    for key in _LISTS:
        yield from schema.get(key, [])
    for key in _SCHEMAS:
        value = schema.get(key, True)
        if isinstance(value, list):  # items in older drafts of JSON Schema
            yield from value
        elif value is not False:
            yield value


def _check_types(schema: Mapping[str, Any]) -> None:
    def need(key: str, what: str, holds: Callable[[Any], bool]) -> None:
        if key in schema and not holds(schema[key]):
            raise ArgumentError(f"its {key} must be {what}, not {json.dumps(schema[key]):.80}")

    def is_text(value: Any) -> bool:
        return isinstance(value, str)

    def are_texts(value: Any) -> bool:
        return isinstance(value, list) and all(map(is_text, value))

    need("type", "a type or a list of types", _are_types)
    need("required", "a list of names", are_texts)
    need("enum", "a list of values, not empty", lambda one: isinstance(one, list) and bool(one))
    need("pattern", "a string", is_text)
    need("format", "a string", is_text)
    for key in _OBJECTS:
        need(key, "an object of schemas", lambda one: isinstance(one, dict))
    for key in _LISTS:
        need(key, "a list of schemas, not empty", lambda one: isinstance(one, list) and bool(one))
    for key in _LENGTHS:
        need(key, "a whole number, 0 or more", lambda one: type(one) is int and one >= 0)
        _check_repetitions(key, schema.get(key, 0))
    for low, high in (_LENGTHS[:2], _LENGTHS[2:]):
        if high in schema and schema[high] < schema.get(low, 0):
            raise ArgumentError(f"its {high} must be at least its {low}")
    for key in _NUMBERS:
        need(key, "a number", _is_number)
    for bounds in re.findall(r"\{[\d, ]*\}", schema.get("pattern", "")):
        for number in re.findall(r"\d+", bounds):
            _check_repetitions("pattern", int(number[:9]))  # 9 digits show that it is too many


def _are_types(value: Any) -> bool:
    kinds = value if isinstance(value, list) and value else [value]
    return all(isinstance(one, str) and one in _TYPES for one in kinds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _check_repetitions(key: str, n: int) -> None:
    if n > MOST_REPEATED:
        raise ArgumentError(f"its {key} asks for more than {MOST_REPEATED} repetitions")
