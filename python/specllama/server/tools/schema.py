"""Checks a tool's JSON schema, and leaves out of it what no grammar can express."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.schema.check import MOST_REPEATED, check
from specllama.requests.schema.pattern import PatternError, pattern_rule
from specllama.requests.schema.references import References
from specllama.server.error import ApiError

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}

_LONGEST_PATTERN = 2000
"""Most bytes of a pattern's GBNF rule."""
_MOST_IN_PATTERN = 2000
"""Repetitions of a pattern, nested ones multiplied; llama.cpp does not read so many."""
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_CONSTANTS = ("enum", "const")
_BY_NAME = ("properties", "$defs", "definitions")
"""Keywords whose value is an object of schemas by name."""
_OF_NO_RULE = ("not", "if", "then", "else", "contains", "patternProperties")
"""Keywords with schemas of which grammars are not made."""


def expressible(schema: Any, field: str) -> dict[str, Any]:
    """Return a schema of objects that allows all that the given schema allows, and in which nothing
    is left that is known to have no grammar.

    These are left out: patterns that cannot become a grammar, large bounds of lengths, references
    that lead nowhere, and keywords that are null or of which grammars are not made.

    Args:
        schema: What the client has sent.
        field: The name of the field that has it.

    Raises:
        ApiError: It is not a schema, or not one of objects.
    """
    if not isinstance(schema, dict):
        raise ApiError(400, f"{field} must be a JSON schema, an object.", param=field)
    if schema.get("type") not in (None, "object"):
        raise ApiError(400, f'{field}.type must be "object".', param=f"{field}.type")
    parts: list[dict[str, Any]] = []
    found: dict[str, Any] = _copied(schema, parts)
    found["type"] = "object"
    references = References(found)
    for part in parts:
        if isinstance(part.get("$ref"), str) and not _leads_somewhere(part["$ref"], references):
            del part["$ref"]
    try:
        check(found, references)
    except ArgumentError as error:
        message = f"{field} cannot be converted: {error!s:.200}."
        raise ApiError(400, message, param=field) from None
    except RecursionError:  # references to references, hundreds of them
        return dict(ANY_OBJECT)
    return found


def without_lengths(schema: Any) -> Any:
    """Return a schema, as returned by `expressible`, without its bounds of lengths."""
    if isinstance(schema, list):
        return [without_lengths(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: value if key in _CONSTANTS else without_lengths(value)
        for key, value in schema.items()
        if not (key in _LENGTHS and isinstance(value, int))
    }


def _copied(schema: Any, parts: list[dict[str, Any]]) -> Any:
    """Return a copy of a schema, or of a list of schemas, without what cannot be expressed; add all
    schemas in the copy to `parts`."""
    if isinstance(schema, list):
        return [_copied(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    parts.append(copy)
    for key, value in schema.items():
        if key in _CONSTANTS and (value is not None or key == "const"):
            copy[key] = value
        elif key in _BY_NAME and isinstance(value, dict):
            copy[key] = {name: _copied(one, parts) for name, one in value.items()}
        elif value is not None and not _has_no_rule(key, value):
            copy[key] = _copied(value, parts)
    return copy


def _has_no_rule(key: str, value: Any) -> bool:
    if key == "pattern":
        return isinstance(value, str) and not _is_readable(value)
    if key in _LENGTHS:
        return isinstance(value, int) and value > MOST_REPEATED
    return key in _OF_NO_RULE


def _is_readable(pattern: str) -> bool:
    """Whether llama.cpp can read a pattern's rule."""
    try:
        rule = pattern_rule(pattern)
    except PatternError:
        return False
    numbers = re.findall(r"\d+(?=[,}])", pattern)
    bounds = [max(int(number[:9]), 1) for number in numbers]  # 9 digits show that it is too many
    return len(rule) <= _LONGEST_PATTERN and math.prod(bounds) < _MOST_IN_PATTERN


def _leads_somewhere(reference: str, references: References) -> bool:
    try:
        references.target(reference)
    except ArgumentError:
        return False
    return True
