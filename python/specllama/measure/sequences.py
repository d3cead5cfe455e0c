"""Properties of token sequences."""

from __future__ import annotations

from collections.abc import Sequence


def repeated_share(tokens: Sequence[int], order: int = 4) -> float:
    """Return the share of the n-grams of `tokens` that occurred before in `tokens`."""
    grams = [tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Return the first index at which two sequences differ; None if they are equal."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return None if len(a) == len(b) else min(len(a), len(b))
