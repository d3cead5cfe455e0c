"""Integers within bounds, as a grammar."""

from __future__ import annotations

_MOST_DIGITS = 16
"""Most digits of an integer without bounds, in the grammars of llama.cpp's converter."""


def integer_rule(low: int | None, high: int | None) -> str:
    """Return the right side of a GBNF rule for the integers from `low` to `high`, in decimal.

    In a direction without a bound they have up to 16 digits, or as many as the other bound if that
    has the same sign and more digits.

    Args:
        low: The lowest integer; None: no bound.
        high: The highest integer, not below `low`; None: no bound.
    """
    parts = []
    if low is None or low < 0:
        smallest = 1 if high is None or high >= 0 else -high
        parts.append(f'"-" ({_magnitudes(smallest, None if low is None else -low)})')
    if high is None or high >= 0:
        parts.append(_magnitudes(max(0, low or 0), high))
    return " | ".join(parts)


def _magnitudes(low: int, high: int | None) -> str:
    """Return the rule for low to high, where low >= 0: one alternative per number of digits."""
    n_low = len(str(low))
    n_high = max(n_low, _MOST_DIGITS) if high is None else len(str(high))
    parts = []
    for n in range(n_low, n_high + 1):
        first, last = max(low, 10 ** (n - 1) if n > 1 else 0), 10**n - 1
        if high is None and n > n_low:
            parts.append(f"[1-9] [0-9]{{{n - 1},{n_high - 1}}}")
            break
        parts.append(_digits(str(first), str(last if high is None else min(high, last))))
    return " | ".join(parts)


def _digits(first: str, last: str) -> str:
    """Return the rule for first to last, two numbers with the same number of digits."""
    rest = len(first) - 1
    if rest == 0:
        return f"[{first}-{last}]"
    if first[0] == last[0]:
        return f'"{first[0]}" ({_digits(first[1:], last[1:])})'
    low, high = int(first[0]), int(last[0])
    below, above = [], []
    if first[1:] != "0" * rest:
        below = [f'"{low}" ({_digits(first[1:], "9" * rest)})']
        low += 1
    if last[1:] != "9" * rest:
        above = [f'"{high}" ({_digits("0" * rest, last[1:])})']
        high -= 1
    between = [f"[{low}-{high}] [0-9]{{{rest}}}"] if low <= high else []
    return " | ".join([*below, *between, *above])
