"""Whole numbers on command lines."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from specllama import _check

T = TypeVar("T")

UNTIL_FULL = {"-1": None}
"""Value of -n, besides a number, for an answer that may continue until the context is full."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,100}")
_INT32 = 2**31 - 1


def whole(
    low: int | None = None, high: int = _INT32, *, words: Mapping[str, T] | None = None
) -> Callable[[str], int | T]:
    """Return the type of a whole number, for argparse.

    Args:
        low, high: The inclusive bounds. Without `low` there are no bounds here, for options whose
            range the core checks.
        words: Texts that are allowed instead of a number, with their values.
    """
    known = words or {}

    def read(text: str) -> int | T:
        if text in known:
            return known[text]
        number = int(text) if _NUMBER.fullmatch(text) else None
        if number is not None and (low is None or low <= number <= high):
            return number
        *others, last = *known, f"a whole number{_bounds(low, high, number)}"
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise argparse.ArgumentTypeError(f"must be {allowed}, not {_check.quoted(text)}")

    return read


def _bounds(low: int | None, high: int, number: int | None) -> str:
    """Return the bounds in words. The limit of 32 bits is left out unless the number exceeds it."""
    if low is None:
        return ""
    if high == _INT32 and (number is None or number < low):
        return f" from {low} on"
    return f" from {low} to {high}"
