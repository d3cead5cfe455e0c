"""What else must hold for a value, by keywords that llguidance does not follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from specllama.requests.schema.disjoint import are_disjoint
from specllama.requests.schema.negated import InexpressibleError, negated
from specllama.requests.schema.reader import Reader

OPPOSITE = "x-opposite"
"""Marks what was made of a `not`: its properties and items do not count as evaluated."""

_TAKEN = frozenset({
    "$ref", "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired",
    "dependentSchemas", "dependencies",
})  # fmt: skip


def split(
    schema: Mapping[str, Any], given: Mapping[str, Any], reader: Reader
) -> tuple[dict[str, Any], list[Any]]:
    """Return what a schema says itself, by keywords that llguidance follows, and other schemas that
    must hold as well, which say the rest.

    Args:
        schema: The schema as the user or client gave it.
        given: The same, repaired.
        reader: The reader of the whole.
    """
    own = {key: one for key, one in given.items() if key not in _TAKEN}
    found: list[Any] = []
    for key, value in given.items():
        if key == "$ref":
            found.append(reader.target(schema))
        elif key == "allOf":
            found += value
        elif key in ("not", "if", "oneOf"):
            try:
                found += _MADE[key](value, given, reader)
            except InexpressibleError:
                reader.leave(key)
                if key == "oneOf":
                    found.append({"anyOf": value})
        elif key in ("dependentRequired", "dependentSchemas", "dependencies"):
            found += _dependent(value)
    return own, found


def _opposite(schema: Any, reader: Reader) -> Any:
    found = negated(schema, reader.followed)
    return found if isinstance(found, bool) else {**found, OPPOSITE: True}


def _without(schema: Any, _: Mapping[str, Any], reader: Reader) -> Iterator[Any]:
    yield _opposite(schema, reader)


def _conditional(schema: Any, given: Mapping[str, Any], reader: Reader) -> Iterator[Any]:
    then, otherwise = given.get("then", True), given.get("else", True)
    if then is not True or otherwise is not True:
        opposite = _opposite(schema, reader)
        yield {"anyOf": [{"allOf": [schema, then]}, {"allOf": [opposite, otherwise]}]}


def _one_of(schemas: list[Any], _: Mapping[str, Any], reader: Reader) -> Iterator[Any]:
    if are_disjoint(schemas, reader):
        yield {"anyOf": schemas}
        return
    opposites = [_opposite(one, reader) for one in schemas]
    yield {
        "anyOf": [
            {"allOf": [one, *(other for k, other in enumerate(opposites) if k != n)]}
            for n, one in enumerate(schemas)
        ]
    }


_MADE: Mapping[str, Callable[[Any, Mapping[str, Any], Reader], Iterator[Any]]] = {
    "not": _without,
    "if": _conditional,
    "oneOf": _one_of,
}


def _dependent(needs: Mapping[str, Any]) -> Iterator[Any]:
    for name, needed in needs.items():
        absent = {"properties": {name: False}, OPPOSITE: True}
        then = {"required": needed} if isinstance(needed, list) else needed
        yield {"anyOf": [absent, {"allOf": [{"required": [name]}, then]}]}
