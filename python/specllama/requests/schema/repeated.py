"""A bounded number of repetitions, as a grammar."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

_FEW = 64
"""Up to this many repetitions are left to llama.cpp, which may make a rule of each."""


def repeated(rule: str, low: int, high: int | None, named: Callable[[str], str]) -> str:
    """Return GBNF for a rule that is repeated `low` to `high` times in a row.

    llama.cpp makes a rule of every optional repetition; more than 2000 of them it reads as any
    number, or refuses. So n repetitions are made of about sqrt(n) blocks of about sqrt(n)
    repetitions each, and each count can be parsed in one way, or two.

    Args:
        rule: The name of the rule to repeat.
        low: Fewest repetitions.
        high: Most repetitions; None: any number.
        named: Makes a rule of a piece of GBNF, and returns the new rule's name.

    Returns:
        GBNF; "" for zero repetitions.
    """
    parts = _times(rule, low, named)
    if high is None:
        parts.append(f"{rule}*")
    elif high > low:
        parts += _times_up_to(rule, high - low, named)
    return " ".join(parts)


def _times(rule: str, n: int, named: Callable[[str], str]) -> list[str]:
    if n <= _FEW:
        return [f"{rule}{{{n}}}"] if n else []
    size = isqrt(n)
    n_blocks, n_single = divmod(n, size)
    return [f"{named(f'{rule}{{{size}}}')}{{{n_blocks}}}", *_times(rule, n_single, named)]


def _times_up_to(rule: str, n: int, named: Callable[[str], str]) -> list[str]:
    if n <= _FEW:
        return [f"{rule}{{0,{n}}}"]
    # At least size - 1 single repetitions must remain, to fill the gaps between counts of blocks.
    size = isqrt(n)
    n_blocks = (n - size + 1) // size
    block = named(f"{rule}{{{size}}}")
    return [f"{block}{{0,{n_blocks}}}", f"{rule}{{0,{n - n_blocks * size}}}"]
