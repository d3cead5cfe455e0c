"""The shortest time in which a text could be generated, over all choices of draft lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama.errors import ArgumentError
from specllama.theory import _arguments
from specllama.theory.decode_times import DecodeTimesLike


@dataclass(frozen=True)
class OraclePath:
    """The rounds of a planner that knows which tokens will be accepted.

    Attributes:
        time: Time of all rounds together, in the unit of v.
        drafted: Tokens drafted in each round, shape [n_rounds].
        accepted: Tokens accepted in each round, shape [n_rounds]. Each round adds one more token,
            the target's own; together they are the whole text.
    """

    time: float
    drafted: NDArray[np.int64]
    accepted: NDArray[np.int64]


def oracle_bound(
    acceptable: ArrayLike,
    v: DecodeTimesLike,
    draft_step: float = 0.0,
    latency: float = 0.0,
    cap: int | None = None,
) -> OraclePath:
    """The shortest path through a text with known acceptable drafts:

        T(i) = min over k <= acceptable[i] of v(k + 1) + k d + latency + T(i + k + 1),  T(n) = 0

    No choice of draft lengths over the same drafts is faster: this is the oracle for gamma of
    section 3.5, with real text and real costs. If v falls from one n to a larger one, drafting more
    tokens than are accepted may be faster, so a round with k accepted tokens costs the minimum of
    v(m + 1) + m d over m >= k. O(n cap) time, O(n) memory.

    Args:
        acceptable: For each position of the text, how many tokens of the draft available there
            would be accepted, shape [n_tokens]: `acceptable[i]` counts from token i of the text.
        v: Times of a target decode, as in `specllama.theory.measured`.
        draft_step: Time d of one draft-model step.
        latency: Additional time of a round.
        cap: Maximum number of tokens drafted in a round (default: the most that an array `v`
            allows; for a function, the largest of `acceptable`).

    Raises:
        ArgumentError: A value is negative, not finite or not a whole number; an array `v` has fewer
            than cap + 1 times; or rounds take no time.
    """
    longest = _counts(acceptable)
    if cap is None and callable(v):
        cap = int(longest.max(initial=0))
    if cap is None:
        times = _arguments.decode_times(v)
    else:
        times = _arguments.decode_times(v, _arguments.gamma("cap", cap) + 1)
    widths, rounds = _cheapest(_arguments.round_times(times, draft_step, latency))

    n = longest.size
    # The last token of a round is the target's own, so a draft must leave room for it.
    limits = np.minimum(longest, np.minimum(rounds.size - 1, n - 1 - np.arange(n)))
    remaining = np.zeros(n + 1)
    choices = np.zeros(n, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        k = limits[i] + 1
        totals = rounds[:k] + remaining[i + 1 : i + 1 + k]
        choices[i] = np.argmin(totals)
        remaining[i] = totals[choices[i]]

    accepted = []
    i = 0
    while i < n:
        accepted.append(choices[i])
        i += choices[i] + 1
    path = np.array(accepted, dtype=np.int64)
    return OraclePath(float(remaining[0]), widths[path], path)


def _cheapest(rounds: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each k, the m >= k with the shortest round (the smallest of equal ones), and its time."""
    widths = np.arange(rounds.size)
    for k in range(rounds.size - 2, -1, -1):
        if rounds[widths[k + 1]] < rounds[k]:
            widths[k] = widths[k + 1]
    return widths, rounds[widths]


def _counts(acceptable: ArrayLike) -> NDArray[np.int64]:
    array = _arguments.floats("acceptable", acceptable)
    if array.ndim != 1 or np.any(array % 1):
        raise ArgumentError("acceptable must be a list of whole numbers.")
    counts: NDArray[np.int64] = np.minimum(array, _arguments.MAX_GAMMA).astype(np.int64)
    return counts
