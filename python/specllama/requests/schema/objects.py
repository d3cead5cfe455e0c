"""Names and numbers of an object's properties, expressed by keywords that llguidance supports."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.requests.schema.reader import Reader

_MOST_CHOICES = 64
"""Most sets of properties that are listed for minProperties and maxProperties."""


def with_named_properties(
    schema: Mapping[str, Any], names: Any, reader: Reader
) -> tuple[dict[str, Any], list[Any]]:
    """Return a schema of objects, and further schemas that must also hold, for a schema with
    propertyNames.

    Args:
        schema: The schema without propertyNames.
        names: The schema of the names, with its reference resolved.
        reader: The reader of the whole schema.
    """
    found = dict(schema)
    if isinstance(names, bool) or not names.keys() - {"type"}:
        return found, [] if names else [{"maxProperties": 0}]
    if "patternProperties" not in schema and names.keys() & {"const", "enum"}:
        described, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        texts = [one for one in names.get("enum", [names.get("const")]) if isinstance(one, str)]
        found["properties"] = {name: described.get(name, other) for name in texts}
        found["additionalProperties"] = False
        return found, []
    if names.keys() <= {"type", "pattern"}:
        pattern = names["pattern"]
    elif names.keys() <= {"type", "minLength", "maxLength"}:
        pattern = rf"^[\s\S]{{{names.get('minLength', 0)},{names.get('maxLength', '')}}}$"
    else:
        reader.leave("propertyNames")
        return found, []
    return found, [{"patternProperties": {pattern: True}, "additionalProperties": False}]


def with_counted_properties(
    schema: Mapping[str, Any], reader: Reader
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a schema of objects, and alternatives, which may be empty. An object must follow the
    schema and one of the alternatives. Together they enforce minProperties and maxProperties,
    unless that needs too many alternatives.

    llguidance counts properties only if all listed ones are required. So each alternative requires
    some of the optional properties and forbids others.
    """
    properties, required = schema.get("properties", {}), schema.get("required", [])
    optional = [
        name for name, one in properties.items() if one is not False and name not in required
    ]
    n_required = len(set(required))
    low = max(schema.get("minProperties", 0) - n_required, 0)
    high = schema.get("maxProperties", math.inf) - n_required
    is_open = schema.get("additionalProperties", True) is not False or bool(
        schema.get("patternProperties")
    )
    found = dict(schema)
    if low == 0:
        found.pop("minProperties", None)
    if high >= len(optional) and not is_open:
        found.pop("maxProperties", None)
    if low > 1 and is_open:
        reader.remark(f"for minProperties {schema['minProperties']}, equal names count, too")
    if not optional or not found.keys() & {"minProperties", "maxProperties"}:
        return found, []
    choices = _choices(optional, low, high, is_open)
    if choices is None:
        for key in ("minProperties", "maxProperties"):
            if key in found:
                reader.leave(key, found.pop(key))
        return found, []
    return found, [
        {
            "type": "object",
            "required": list(chosen),
            "properties": dict.fromkeys(forbidden, False),
        }
        for chosen, forbidden in choices
    ]


def _choices(
    names: Sequence[str], low: int, high: float, is_open: bool
) -> list[tuple[Sequence[str], Sequence[str]]] | None:
    """Return the ways to choose from `low` to `high` of the names, or of other ones if `is_open`:
    for each way, the required and the forbidden names. None: there are too many ways."""
    least = 0 if is_open else low
    most = int(min(high, len(names)))
    exact = range(least, low if math.isinf(high) else most + 1)
    # With no upper limit, more names may follow: only the first `low` ones are chosen.
    first = [low] if math.isinf(high) and low <= len(names) else []
    if sum(math.comb(len(names), n) for n in (*exact, *first)) > _MOST_CHOICES:
        return None
    found: list[tuple[Sequence[str], Sequence[str]]] = []
    for n in exact:
        for chosen in itertools.combinations(names, n):
            found.append((chosen, [one for one in names if one not in chosen]))
    for n in first:
        for chosen in itertools.combinations(names, n):
            before = names[: names.index(chosen[-1])] if chosen else []
            found.append((chosen, [one for one in before if one not in chosen]))
    return found
