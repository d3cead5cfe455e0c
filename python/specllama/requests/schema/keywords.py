"""Keywords about a value itself, in the form that llguidance supports."""

from __future__ import annotations

from typing import Any

from specllama.requests.schema.asked import can_follow
from specllama.requests.schema.formats import followable, formatted
from specllama.requests.schema.reader import Reader

_MOST_PATTERNS = 32
"""Most patterns of names: llguidance compares each with each."""

_EXACT = 2**53
"""Up to this number, doubles represent all integers exactly."""


def with_known_keywords(schema: dict[str, Any], reader: Reader) -> dict[str, Any]:
    """Return a schema without the keywords that llguidance does not support. The reader records
    these; they are not enforced.

    Args:
        schema: A repaired schema, without the schemas that apply to the same value.
        reader: The reader of the whole schema.
    """
    found = dict(schema)
    for key in ("$dynamicRef", "$recursiveRef"):
        if found.pop(key, None) is not None:
            reader.leave(key)
    if found.pop("uniqueItems", False) and found.get("maxItems", 2) > 1:
        reader.leave("uniqueItems")
    _take_constants(found, reader)
    _take_text(found, reader)
    _take_contained(found, reader)
    factor = found.get("multipleOf")
    if factor is not None and not can_follow({"type": "number", "multipleOf": factor}):
        reader.leave("multipleOf", found.pop("multipleOf"))
    patterns = dict.fromkeys(found.get("patternProperties", ()), True)
    if patterns and (
        len(patterns) > _MOST_PATTERNS or not can_follow({"patternProperties": patterns})
    ):
        reader.leave("patternProperties")
        del found["patternProperties"]
        found.pop("additionalProperties", None)  # for names that do not match the patterns
    return found


def _take_constants(schema: dict[str, Any], reader: Reader) -> None:
    constants: list[tuple[str, list[Any]]] = [
        ("const", [schema.get("const")]),
        ("enum", schema.get("enum", [])),
    ]
    for key, values in constants:
        large = [one for one in values if type(one) in (int, float) and abs(one) > _EXACT]
        if large:
            reader.leave(key, large[0])
            del schema[key]


def _take_text(schema: dict[str, Any], reader: Reader) -> None:
    pattern, name = schema.pop("pattern", None), schema.pop("format", None)
    if "string" not in schema.get("type", ("string",)):
        return
    found: dict[str, Any] = {}
    if pattern is not None:
        if (same := followable(pattern)) is None:
            reader.leave("pattern", pattern)
        else:
            found["pattern"] = same
    if name is not None:
        if (form := formatted(name)) is None:
            reader.remark(f"the format {name!r:.40} is not checked")
        elif "pattern" in found:
            found["allOf"] = [form]
        else:
            found |= form
    lengths: dict[str, Any] = {
        key: schema[key] for key in ("minLength", "maxLength") if key in schema
    }
    if found and lengths and not can_follow({"type": "string", **found, **lengths}):
        for key, length in lengths.items():
            reader.leave(key, length)
            del schema[key]
    schema |= found


def _take_contained(schema: dict[str, Any], reader: Reader) -> None:
    contained = schema.pop("contains", None)
    low, high = schema.pop("minContains", 1), schema.pop("maxContains", None)
    if contained is None:
        return
    if reader.followed(contained) in (True, {}):
        schema["minItems"] = max(low, schema.get("minItems", 0))
        if high is not None:
            schema["maxItems"] = min(high, schema.get("maxItems", high))
    elif low > 0 or high is not None:
        reader.leave("contains")
