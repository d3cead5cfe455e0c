"""Equality of JSON values."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> str:
    """Return a text that two JSON values share if they are equal, and only then.

    To JSON 1 equals 1.0, but not true, which to Python they both do. The order of an object's
    members does not count.
    """
    return json.dumps(_whole(value), sort_keys=True)


def are_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal."""
    return bool(one == other) and canonical(one) == canonical(other)


def _whole(value: Any) -> Any:
    """Return a JSON value with integers for the numbers that are whole."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
