"""Several JSON schemas that must hold at once, merged into one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.schema.empty import EmptyError
from specllama.requests.schema.same import are_same, canonical

_HIGHEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})
_LOWEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems"})
_MOST = 1024  # schemas at once: merging them takes quadratic time
_ONLY_ONE = frozenset({"pattern", "format", "anyOf", "oneOf"})
_BY_PLACE = frozenset({"properties", "prefixItems"})


def merged(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one schema that allows the values that all of these allow.

    Args:
        schemas: They have neither `allOf` nor `$ref`; schemas nested in them may. Keywords that do
            not restrict values, such as a title, are taken from the first schema that has them. If
            items are a list, as of old, they are called prefixItems in what is returned.

    Raises:
        ArgumentError: One schema cannot express it.
        EmptyError: There is no such value.
    """
    whole: dict[str, Any] = {}
    for n, schema in enumerate(schemas):
        if n == _MOST:
            raise ArgumentError(f"it has more than {_MOST} parts that hold at once")
        schema = _with_prefix(schema)
        shared = (whole.keys() & schema.keys()) - _BY_PLACE
        both = {key: _both(key, whole[key], schema[key]) for key in shared}
        by_place = {**_properties(whole, schema), **_prefix(whole, schema)}
        whole = {**whole, **schema, **both, **by_place}
    for low, high in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if whole.get(high, math.inf) < whole.get(low, 0):
            raise EmptyError(f"its {high} is less than its {low}, with all that holds at once")
    return whole


def _with_prefix(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose items, if they are a list as of old, are called prefixItems."""
    if not isinstance(schema.get("items"), list):
        return schema
    return {**schema, "prefixItems": schema["items"], "items": True}


def _properties(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the properties. A name that a schema does not list follows additionalProperties."""
    found = {}
    for name in dict.fromkeys(name for one in schemas for name in one.get("properties", {})):
        parts = [
            one.get("properties", {}).get(name, one.get("additionalProperties", True))
            for one in schemas
        ]
        if False not in parts:
            found[name] = _all_of(parts)
    return {"properties": found} if any("properties" in one for one in schemas) else {}


def _prefix(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the first items. One that a schema does not list follows its items."""
    found = []
    for listed in zip_longest(*(one.get("prefixItems", []) for one in schemas)):
        parts = [
            one.get("items", True) if part is None else part
            for one, part in zip(schemas, listed, strict=True)
        ]
        if False in parts:
            break
        found.append(_all_of(parts))
    return {"prefixItems": found} if any("prefixItems" in one for one in schemas) else {}


def _all_of(parts: Iterable[Any]) -> Any:
    rest = [part for part in parts if part is not True]
    return rest[0] if len(rest) == 1 else {"allOf": rest}


def _both(key: str, one: Any, other: Any) -> Any:
    if are_same(one, other):
        return one
    if key in _HIGHEST:
        return max(one, other)
    if key in _LOWEST:
        return min(one, other)
    if key == "required":
        return list(dict.fromkeys([*one, *other]))
    if key == "const":
        raise EmptyError("no value is both constants that it asks for at once")
    if key in ("enum", "type"):
        return _common(key, one, other)
    if key in ("items", "additionalProperties"):
        return False if False in (one, other) else {"allOf": [one, other]}
    if key in _ONLY_ONE:
        raise ArgumentError(f"it has two different {key} at once, in an allOf or beside a $ref")
    return one


def _common(key: str, *values: Any) -> list[Any]:
    ones, others = (one if isinstance(one, list) else [one] for one in values)
    if key == "type":
        ones, others = _with_integers(ones), _with_integers(others)
    shared = set(map(canonical, others))
    found = [one for one in ones if canonical(one) in shared]
    if not found:
        raise EmptyError(f"no value has both {key}s that it asks for at once")
    return found


def _with_integers(kinds: list[str]) -> list[str]:
    return [*kinds, "integer"] if "number" in kinds and "integer" not in kinds else kinds
