"""Whether at most one of several JSON schemas can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.requests.schema.reader import Reader

TYPES = ("null", "boolean", "number", "string", "array", "object")
"""The types of JSON values."""

_MOST = 128
"""Most schemas that are compared, each with each."""


def are_disjoint(schemas: Sequence[Any], reader: Reader) -> bool:
    """Return whether no value can follow two of the schemas. Only their types, their constants, and
    the types and constants of required properties are compared."""
    read = [reader.followed(one) for one in schemas]
    constants = [_constants(one) for one in read]
    if None not in constants:
        every = [text for one in constants if one is not None for text in one]
        return len(every) == len(set(every))
    if len(read) > _MOST:
        return False
    return all(
        _are_apart(one, other, reader) for n, one in enumerate(read) for other in read[n + 1 :]
    )


def _are_apart(one: Any, other: Any, reader: Reader) -> bool:
    if one is False or other is False:
        return True
    if one is True or other is True:
        return False
    values, others = _constants(one), _constants(other)
    if values is not None and others is not None:
        return values.isdisjoint(others)
    shared = _types(one) & _types(other)
    if shared != {"object"}:
        return not shared
    return any(
        _are_apart(
            reader.followed(one.get("properties", {}).get(name, True)),
            reader.followed(other.get("properties", {}).get(name, True)),
            reader,
        )
        for name in {*one.get("required", ()), *other.get("required", ())}
    )


def _constants(schema: Any) -> set[str] | None:
    """Return the constants of a schema as texts; None if it has none."""
    if not isinstance(schema, Mapping) or not schema.keys() & {"const", "enum"}:
        return None
    values = [schema["const"]] if "const" in schema else schema["enum"]
    return {json.dumps(_whole(one), sort_keys=True) for one in values}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _types(schema: Mapping[str, Any]) -> set[str]:
    kinds = set(schema.get("type", TYPES))
    return kinds | {"number"} if "integer" in kinds else kinds
