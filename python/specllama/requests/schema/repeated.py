"""So many of something, as a grammar."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

_FEW = 64
"""So many repetitions may have a rule each."""


def repeated(rule: str, low: int, high: int | None, named: Callable[[str], str]) -> str:
    """Return the part of a grammar that is a rule from `low` to `high` times in a row.

    llama.cpp makes a rule of every repetition that may be there or not, and reads more than 2000
    of them as any number, or not at all. So many are made of blocks, of about as many as there are
    blocks: each number has one way to be read, or two.

    Args:
        rule: Its name.
        low: How often it comes at least.
        high: And at most; None: any number of times.
        named: Makes a rule of a part of a grammar, and returns its name.

    Returns:
        GBNF; "" for no times.
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
    # Of single ones there must be one less than in a block, at least.
    size = isqrt(n)
    n_blocks = (n - size + 1) // size
    block = named(f"{rule}{{{size}}}")
    return [f"{block}{{0,{n_blocks}}}", f"{rule}{{0,{n - n_blocks * size}}}"]
