"""unevaluatedProperties and unevaluatedItems, expressed by additionalProperties and items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama.requests.schema.reader import Reader
from specllama.requests.schema.repaired import SchemaError
from specllama.requests.schema.together import OPPOSITE, split

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_DEEPEST = 48


def with_evaluated(schema: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Return a schema with the same values but without these two keywords itself.

    What is evaluated depends on which schemas of an `anyOf` hold, so each becomes a case of its
    own.

    Args:
        schema: A schema with one or both of these keywords, repaired.
        reader: The reader of the whole.
    """
    rules = {key: schema[key] for key in UNEVALUATED if key in schema}
    parts = _parts({key: one for key, one in schema.items() if key not in rules}, reader, 0)
    for n, part in enumerate(parts):
        if "anyOf" in part and OPPOSITE not in part:
            rest = [*parts[:n], {key: one for key, one in part.items() if key != "anyOf"}]
            rest += parts[n + 1 :]
            return {"anyOf": [{"allOf": [*rest, one], **rules} for one in part["anyOf"]]}
    evaluating = [one for one in parts if OPPOSITE not in one]
    return {"allOf": [*parts, _closing(evaluating, rules, reader)]}


def _parts(schema: Any, reader: Reader, depth: int) -> list[dict[str, Any]]:
    """Return schemas, without others that hold at once in them, that together are this one."""
    if depth > _DEEPEST:
        raise SchemaError("references that lead back to themselves")
    given = reader.read(schema)
    if isinstance(given, bool):
        return [] if given else [{"anyOf": [False]}]
    if OPPOSITE in schema:
        return [schema]
    if any(key in given for key in UNEVALUATED):
        return _parts(with_evaluated(given, reader), reader, depth + 1)
    own, others = split(schema, given, reader)
    found = [own] if own else []
    return found + [part for one in others for part in _parts(one, reader, depth + 1)]


def _closing(
    parts: list[dict[str, Any]], rules: Mapping[str, Any], reader: Reader
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "unevaluatedProperties" in rules and not any("additionalProperties" in one for one in parts):
        for key in ("properties", "patternProperties"):
            found[key] = {name: True for one in parts for name in one.get(key, ())}
        found["additionalProperties"] = rules["unevaluatedProperties"]
    if "unevaluatedItems" in rules and not any("items" in one for one in parts):
        if any("contains" in one for one in parts):
            reader.leave("unevaluatedItems")
        else:
            n = max((len(one.get("prefixItems", ())) for one in parts), default=0)
            found |= {"prefixItems": [True] * n, "items": rules["unevaluatedItems"]}
    return found
