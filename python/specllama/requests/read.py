"""Readers of a generation's options. Each function gets the option's name and the given value, and
returns the value in the form the core takes. A wrong type raises ArgumentError."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError


def anything(name: str, value: Any) -> Any:
    """Return the value unchanged; it is checked where it is used."""
    return value


def most_tokens(name: str, value: Any) -> int:
    """Return the limit. None is read as -1: until the context is full."""
    return -1 if value is None else _check.integer(name, value, low=-1)


def most_likely(name: str, value: Any) -> int:
    """Return how many of the most likely tokens may be chosen. -1 is read as 0: all."""
    number = _check.integer(name, value)
    return 0 if number == -1 else number


def biases(name: str, value: Any) -> list[tuple[int, float]]:
    """Return pairs of a token id and its bias."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ArgumentError(
            f"{name} must map token ids to numbers, not be a {type(value).__name__}."
        )
    biases = []
    for token, bias in value.items():
        one = f"{name}[{_check.quoted(token)}]"
        number = _check.number(one, bias)
        if math.isnan(number) or number > 1e30:
            raise ArgumentError(
                f"{one} must be at most 1e30, or minus infinity, not {_check.quoted(bias)}."
            )
        biases.append((_check.integer(f"a token id of {name}", token), number))
    return biases


def seed(name: str, value: Any) -> int | None:
    """Return the seed. None: a fresh one; -1 is read as None, as in llama.cpp."""
    if value is None:
        return None
    seed = _check.integer(name, value, low=-1, high=2**64 - 1)
    return None if seed == -1 else seed


def ends(name: str, value: Any) -> list[int]:
    """Return a list of whole numbers; None becomes an empty one."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping, set)) or not _check.has_several(value):
        raise ArgumentError(f"{name} must be a list of whole numbers, not {_check.quoted(value)}.")
    return [_check.integer(f"{name}[{i}]", one) for i, one in enumerate(value)]


def reference(name: str, value: Any) -> str | _check.Tokens:
    """Return a text or token ids; None becomes no token ids."""
    if value is None:
        return []
    return _check.text(name, value) if isinstance(value, str) else _check.tokens(name, value)
