"""The opposite of a JSON schema, where a schema can express it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

TYPES = ("null", "boolean", "number", "string", "array", "object")

_OPPOSITES: Mapping[str, tuple[str, str, int]] = {
    "minimum": ("number", "exclusiveMaximum", 0),
    "maximum": ("number", "exclusiveMinimum", 0),
    "exclusiveMinimum": ("number", "maximum", 0),
    "exclusiveMaximum": ("number", "minimum", 0),
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1),
    "maxProperties": ("object", "minProperties", 1),
}
"""The type that a bound is about, the opposite bound, and how far that is away."""

_WITHOUT_OPPOSITE = frozenset({
    "oneOf", "if", "contains", "uniqueItems", "propertyNames", "patternProperties",
    "additionalProperties", "items", "pattern", "format", "multipleOf", "dependentRequired",
    "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems",
    "$dynamicRef", "$recursiveRef",
})  # fmt: skip

_DEEPEST = 16
"""Schemas within schemas; references could go on without end."""


class InexpressibleError(Exception):
    """No schema without `not` is the opposite of this one."""


def negated(schema: Any, followed: Callable[[Any], Any], depth: int = 0) -> Any:
    """Return a schema of exactly the values that the given one does not allow.

    Args:
        schema: A schema.
        followed: Returns a schema repaired, its reference followed; bool for True and False.
        depth: How many schemas it is inside.

    Raises:
        InexpressibleError: There is no such schema, or none is known.
    """
    schema = followed(schema)
    if isinstance(schema, bool):
        return not schema
    if depth > _DEEPEST:
        raise InexpressibleError

    def opposite(one: Any) -> Any:
        return negated(one, followed, depth + 1)

    cases = [case for key, one in schema.items() for case in _cases(key, one, schema, opposite)]
    return {"anyOf": cases} if cases else False


def _cases(
    key: str, value: Any, schema: Mapping[str, Any], opposite: Callable[[Any], Any]
) -> Iterable[Any]:
    """Return schemas of which one holds for each value that breaks this keyword of a schema."""
    if key in _OPPOSITES:
        kind, other, step = _OPPOSITES[key]
        is_none = value + step < 0 and kind != "number"
        return [] if is_none else [{"type": kind, other: value + step}]
    if key == "type":
        return _other_types(value)
    if key in ("const", "enum"):
        return _other_constants([value] if key == "const" else value)
    if key == "required":
        return [{"type": "object", "properties": {name: False}} for name in value]
    if key == "properties":
        return [
            {"type": "object", "required": [name], "properties": {name: opposite(one)}}
            for name, one in value.items()
        ]
    if key == "prefixItems":
        return [
            {"type": "array", "minItems": n + 1, "prefixItems": [*[True] * n, opposite(one)]}
            for n, one in enumerate(value)
        ]
    if key == "items" and value is False:
        return [{"type": "array", "minItems": len(schema.get("prefixItems", [])) + 1}]
    if key == "allOf":
        return [opposite(one) for one in value]
    if key == "anyOf":
        return [{"allOf": [opposite(one) for one in value]}]
    if key == "not":
        return [value]
    if key in _WITHOUT_OPPOSITE and (key == "uniqueItems" or value not in (True, {})):
        raise InexpressibleError
    return []


def _other_types(kinds: list[str]) -> list[Any]:
    if "integer" in kinds and "number" not in kinds:
        raise InexpressibleError
    return [{"type": [one for one in TYPES if one not in kinds]}]


def _other_constants(constants: list[Any]) -> list[Any]:
    """Return schemas of all values but constants that are strings, booleans or null."""
    if not all(one is None or isinstance(one, (str, bool)) for one in constants):
        raise InexpressibleError
    texts = [one for one in constants if isinstance(one, str)]
    flags = [one for one in (True, False) if not any(one is other for other in constants)]
    kinds = [one for one in TYPES if one not in ("null", "boolean", "string")]
    return [
        {"type": kinds if None in constants else [*kinds, "null"]},
        *({"const": one} for one in flags),
        {"type": "string", **({"pattern": other_texts(texts)} if texts else {})},
    ]


def other_texts(texts: Iterable[str]) -> str:
    """Return a regular expression of all texts but these: a trie of them that is left somewhere."""
    return f"^{_left_trie(sorted(set(texts)))}$"


def _left_trie(texts: list[str]) -> str:
    ends: dict[str, list[str]] = {}
    for text in filter(None, texts):
        ends.setdefault(text[0], []).append(text[1:])
    escaped = {one: rf"\u{{{ord(one):x}}}" for one in ends}
    firsts = "".join(escaped.values())
    parts = [rf"[^{firsts}][\s\S]*" if firsts else r"[\s\S]+"]
    parts += [f"{escaped[first]}{_left_trie(rest)}" for first, rest in ends.items()]
    return f"(?:{'|'.join(parts)}){'' if '' in texts else '?'}"
