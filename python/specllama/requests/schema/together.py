"""Schemas that must also hold for a value, from keywords that llguidance does not support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama.requests.schema.disjoint import TYPES, are_disjoint
from specllama.requests.schema.reader import Reader

_TAKEN = frozenset({
    "$ref", "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
    "dependencies",
})  # fmt: skip


def split(
    schema: Mapping[str, Any], given: Mapping[str, Any], reader: Reader
) -> tuple[dict[str, Any], list[Any]]:
    """Split a schema into one with the keywords that llguidance supports, and other schemas that
    must also hold.

    Args:
        schema: The schema as given by the user or client.
        given: The same schema, repaired.
        reader: The reader of the whole schema.
    """
    own = {key: one for key, one in given.items() if key not in _TAKEN}
    found: list[Any] = []
    for key, value in given.items():
        if key == "$ref":
            found.append(reader.target(schema))
        elif key == "allOf":
            found += value
        elif key == "oneOf":
            found.append({"anyOf": value})
            if not are_disjoint(value, reader):
                reader.leave(key)
        elif key == "not":
            found.append(_opposite(value, reader))
        elif key == "if" and given.keys() & {"then", "else"}:
            condition = reader.followed(value)
            if isinstance(condition, bool):
                found.append(given.get("then" if condition else "else", True))
            else:
                reader.leave(key)
        elif key in ("dependentRequired", "dependentSchemas", "dependencies"):
            found += (_dependent(name, needed) for name, needed in value.items())
    return own, found


def _opposite(schema: Any, reader: Reader) -> Any:
    """Return the negation of a schema if that is simple; else True, so it is not enforced."""
    given = reader.followed(schema)
    if isinstance(given, bool) or not given:
        return given is False
    if given.keys() == {"type"} and "integer" not in given["type"]:
        others = [one for one in TYPES if one not in given["type"]]
        return {"type": others} if others else False
    reader.leave("not")
    return True


def _dependent(name: str, needed: Any) -> Any:
    then = {"required": needed} if isinstance(needed, list) else needed
    return {
        "anyOf": [{"properties": {name: False}}, {"allOf": [{"required": [name]}, then]}],
    }
