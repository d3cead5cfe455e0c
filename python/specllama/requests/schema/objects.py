"""Names and numbers of an object's properties, by keywords that llguidance follows."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specllama.requests.schema.reader import Reader

_MOST_CHOICES = 64
"""Most sets of properties that are written out for minProperties and maxProperties."""


def with_named_properties(
    schema: Mapping[str, Any], names: Any, left: Callable[[str], None]
) -> dict[str, Any]:
    """Return a schema of objects whose propertyNames are expressed by other keywords.

    Args:
        schema: The schema without propertyNames.
        names: The schema of the names, its reference followed.
        left: Called with the description of a keyword that is left out though it restricts.
    """
    if isinstance(names, bool):
        return {**schema} if names else {**schema, "maxProperties": 0}
    other = schema.get("additionalProperties", True)
    described = schema.get("properties", {})
    constants = [names["const"]] if "const" in names else names.get("enum")
    if constants is not None and "patternProperties" not in schema:
        texts = [one for one in constants if isinstance(one, str)]
        properties = {name: described.get(name, other) for name in texts}
        return {**schema, "properties": properties, "additionalProperties": False}
    low, high = names.get("minLength", 0), names.get("maxLength", "")
    pattern = names.get("pattern", rf"^[\s\S]{{{low},{high}}}$")
    rest = names.keys() - {"title", "description", "type"}
    if not rest:
        return {**schema}
    if "patternProperties" in schema or (
        rest != {"pattern"} and not rest <= {"minLength", "maxLength"}
    ):
        left("propertyNames")
        return {**schema}
    try:
        fits = re.compile(pattern).search
        properties = {name: one if fits(name) else False for name, one in described.items()}
    except (re.error, OverflowError):
        left(f"propertyNames with the pattern {pattern!r:.80}")
        return {**schema}
    return {
        **schema,
        "properties": properties,
        "patternProperties": {pattern: other},
        "additionalProperties": False,
    }


def with_counted_properties(
    schema: Mapping[str, Any], reader: Reader
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a schema of objects, and schemas of which one must hold besides, that allow as many
    properties as minProperties and maxProperties of the given schema do.

    llguidance counts properties only if all that are listed are required. So optional ones are
    either required or forbidden, in each way that has the right number.
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
                reader.leave(f"{key} {found.pop(key)}")
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
    """Return the ways to have from `low` to `high` of the names, or of other ones if `is_open`: for
    each the names that must come and those that may not. None: there are too many."""
    least = 0 if is_open else low
    most = int(min(high, len(names)))
    exact = range(least, low if math.isinf(high) else most + 1)
    # From here on, more may come: only the first names are chosen.
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
