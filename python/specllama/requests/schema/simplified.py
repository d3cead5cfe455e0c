"""Simplifies a JSON schema to a form that llama.cpp's converter turns into right grammars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specllama.requests.schema.empty import EmptyError
from specllama.requests.schema.same import are_same

_ANYTHING: Mapping[str, Any] = {"type": "value"}
"""The converter's schema for any JSON value."""

_KINDS = {
    "properties": "object", "required": "object", "additionalProperties": "object",
    "items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array",
    "pattern": "string", "minLength": "string", "maxLength": "string",
    "minimum": "number", "maximum": "number",
    "exclusiveMinimum": "number", "exclusiveMaximum": "number",
}  # fmt: skip
"""The type that a keyword implies if the schema names no type: that of its first such keyword."""

_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda one: isinstance(one, dict),
    "array": lambda one: isinstance(one, list),
    "string": lambda one: isinstance(one, str),
    "number": lambda one: type(one) in (int, float),
    "integer": lambda one: type(one) is int or (type(one) is float and one.is_integer()),
    "boolean": lambda one: isinstance(one, bool),
    "null": lambda one: one is None,
}
"""Tests, by the name of a type, whether a JSON value has it."""

_SAYS = _KINDS.keys() | {"type", "format", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}


def said(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a schema that restrict values and that a grammar can express."""
    return {key: value for key, value in schema.items() if key in _SAYS}


def simplified(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema that is a single type, constants or a choice: of these the right
    rules are made. Nested schemas stay as they are.

    Args:
        schema: A schema as `merged` returns it, without references, `allOf`, and a list of items.

    Raises:
        EmptyError: No value satisfies the schema.
    """
    for key in ("anyOf", "oneOf"):
        if key in schema:
            rest = {name: value for name, value in schema.items() if name != key}
            if any(one is True or not said(one) for one in schema[key]):
                return simplified(rest)  # the other alternatives would only make it ambiguous
            beside = [{"allOf": [rest, one]} for one in schema[key]]
            return {"anyOf": beside if said(rest) else schema[key]}
    if "const" in schema or "enum" in schema:  # only the type can add to these
        return {"enum": _constants(schema)}
    kind = schema.get("type", next((_KINDS[key] for key in schema if key in _KINDS), None))
    if kind is None:
        return dict(_ANYTHING)
    if isinstance(kind, list):
        # Given a list of types, the converter would ignore all other keywords.
        return {"anyOf": [{**schema, "type": one} for one in kind]}
    if kind == "array":
        return {**_array(schema), "type": kind}
    return {**(_object(schema) if kind == "object" else schema), "type": kind}


def _constants(schema: Mapping[str, Any]) -> list[Any]:
    constants = schema.get("enum", [schema.get("const")])
    if "const" in schema:
        constants = [one for one in constants if are_same(one, schema["const"])]
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    found = [one for one in constants if not kinds or any(_IS[kind](one) for kind in kinds)]
    if not found:
        raise EmptyError("none of its constants is what else it asks for")
    return found


def _array(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an array in one of the two forms that the converter knows: a list of any length with
    items of one schema, or a tuple."""
    items = schema.get("items", True)
    if "prefixItems" not in schema and items is not False:
        return {**schema, "items": items if items not in (True, {}) else _ANYTHING}
    first = schema.get("prefixItems", [])
    n_missing = schema.get("minItems", 0) - len(first)
    if n_missing > 0 and items is False:
        raise EmptyError("its minItems is more than there are items")
    every = [*first, *[items] * n_missing][: schema.get("maxItems")]
    return {"prefixItems": every}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Describe required properties that are not described: the converter would ignore them."""
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", []) if name not in properties]
    more = schema.get("additionalProperties", True)
    if not missing:
        return dict(schema)
    if more is False:
        raise EmptyError(f"it requires {missing[0]!r:.80}, which it does not allow")
    filled = {**properties, **dict.fromkeys(missing, more)}
    open_still = {} if "properties" in schema else {"additionalProperties": more}
    return {**schema, "properties": filled, **open_still}
