"""unevaluatedProperties and unevaluatedItems, expressed by additionalProperties and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specllama.requests.schema.reader import Reader
from specllama.requests.schema.together import split

UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def with_evaluated(schema: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Return a schema with the same values, but without these two keywords at its top level.

    Which properties and items are evaluated depends on which schemas of an `anyOf` hold, so each of
    these becomes a separate case.

    Args:
        schema: A repaired schema with one or both of these keywords.
        reader: The reader of the whole schema.
    """
    rules = {key: one for key, one in schema.items() if key in UNEVALUATED}
    parts = _parts({key: one for key, one in schema.items() if key not in rules}, reader, 0)
    for n, part in enumerate(parts):
        if "anyOf" in part:
            rest = {key: one for key, one in part.items() if key != "anyOf"}
            others = [*parts[:n], rest, *parts[n + 1 :]]
            return {"anyOf": [{"allOf": [*others, one], **rules} for one in part["anyOf"]]}
    return {"allOf": [*parts, _closing(parts, rules, reader)]}


def _parts(schema: Any, reader: Reader, depth: int) -> list[dict[str, Any]]:
    """Return schemas that together are equivalent to this one. They contain no schemas that apply
    to the same value, except in `anyOf`."""
    given = reader.read(schema, depth)
    if isinstance(given, bool):
        return [] if given else [{"anyOf": [False]}]
    if given.keys() & UNEVALUATED:
        given = with_evaluated(given, reader)
        schema = given
    own, others = split(schema, given, reader)
    return [own, *(part for one in others for part in _parts(one, reader, depth + 1))]


def _closing(
    parts: Sequence[Mapping[str, Any]], rules: Mapping[str, Any], reader: Reader
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "unevaluatedProperties" in rules and not any("additionalProperties" in one for one in parts):
        for key in ("properties", "patternProperties"):
            found[key] = {name: True for one in parts for name in one.get(key, ())}
        found["additionalProperties"] = rules["unevaluatedProperties"]
    if "unevaluatedItems" in rules and not any("items" in one for one in parts):
        n = max((len(one.get("prefixItems", ())) for one in parts), default=0)
        found |= {"prefixItems": [True] * n, "items": rules["unevaluatedItems"]}
        if any("contains" in one for one in parts):
            reader.leave("unevaluatedItems")
            return {}
    return found
