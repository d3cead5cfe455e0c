"""Several JSON schemas that must hold at once, merged into one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.schema.empty import EmptyError

_HIGHEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})
_LOWEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems"})
_MOST = 1024  # schemas at once: merging them takes quadratic time
_ONLY_ONE = frozenset({"pattern", "format", "prefixItems", "anyOf", "oneOf"})


def merged(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one schema that allows the values that all of these allow.

    Args:
        schemas: They have neither `allOf` nor `$ref`; schemas nested in them may. Keywords that do
            not restrict values, such as a title, are taken from the first schema that has them.

    Raises:
        ArgumentError: One schema cannot express it.
        EmptyError: There is no such value.
    """
    whole: dict[str, Any] = {}
    for n, schema in enumerate(schemas):
        if n == _MOST:
            raise ArgumentError(f"it has more than {_MOST} parts that hold at once")
        both = {key: _both(key, whole[key], schema[key]) for key in whole.keys() & schema.keys()}
        whole = {**whole, **schema, **both, **_properties(whole, schema)}
    for low, high in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if whole.get(high, math.inf) < whole.get(low, 0):
            raise EmptyError(f"its {high} is less than its {low}, with all that holds at once")
    return whole


def _properties(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the properties. A name that a schema does not list follows additionalProperties."""
    found = {}
    for name in dict.fromkeys(name for one in schemas for name in one.get("properties", {})):
        parts = [
            one.get("properties", {}).get(name, one.get("additionalProperties", True))
            for one in schemas
        ]
        if False not in parts:
            rest = [part for part in parts if part is not True]
            found[name] = rest[0] if len(rest) == 1 else {"allOf": rest}
    return {"properties": found} if any("properties" in one for one in schemas) else {}


def _both(key: str, one: Any, other: Any) -> Any:
    if one == other:
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
    if key in ("items", "additionalProperties") and not isinstance(one, list):
        return False if False in (one, other) else {"allOf": [one, other]}
    if key in _ONLY_ONE or key == "items":
        raise ArgumentError(f"it has two different {key} at once, in an allOf or beside a $ref")
    return one


def _common(key: str, *values: Any) -> list[Any]:
    ones, others = (one if isinstance(one, list) else [one] for one in values)
    if key == "type":
        ones, others = _with_integers(ones), _with_integers(others)
    found = [one for one in ones if one in others]
    if not found:
        raise EmptyError(f"no value has both {key}s that it asks for at once")
    return found


def _with_integers(kinds: list[str]) -> list[str]:
    return [*kinds, "integer"] if "number" in kinds and "integer" not in kinds else kinds
