"""What is made of the numbers that are measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specllama.measure.speed import alpha_of
from specllama.simulate import MAX_DRAFT, ngram_drafts
from specllama.theory import DecodeTimes, measured_improvement_factor, oracle_bound

_RESAMPLES = 2000


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the median of `values` and a confidence interval around it: the percentile bootstrap
    (Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13), always of the
    same resamples.

    Args:
        values: At least one.
        level: Probability that the interval covers the median, in (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(0).integers(array.size, size=(_RESAMPLES, array.size))
    medians = np.median(array[picks], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(array)), float(low), float(high)


def decode_curve(decodes: Iterable[tuple[int, float]], before: Sequence[float] = ()) -> DecodeTimes:
    """Return the seconds v(n) up to the widest decode that is known: medians of times, in
    between by interpolation. Empty if there was no decode of one token.

    Args:
        decodes: Tokens and seconds of each.
        before: v(n) from n = 1 on as it was measured at other times, by the speed of which it is
            scaled; 0: it was not. It says what widths cost that nobody decoded: a planner that
            drafts too little would otherwise hide what it missed.
    """
    by_width: dict[int, list[float]] = {}
    for n, seconds in decodes:
        by_width.setdefault(n, []).append(seconds)
    if 1 not in by_width:
        return DecodeTimes()
    v = {n: float(np.median(times)) for n, times in by_width.items()}
    one = v[1]
    for n, seconds in enumerate(before, 1):
        if seconds > 0 and before[0] > 0:
            v.setdefault(n, one * seconds / before[0])
    return DecodeTimes.through(v, max(v))


def oracle_speed(
    texts: Sequence[tuple[Sequence[int], Sequence[int]]], v: DecodeTimes
) -> float | None:
    """Return how many times faster than plain decoding texts could at most be generated with the
    n-gram drafter's drafts, by a planner that knows what will be accepted.

    Args:
        texts: Prompts and what follows them, as token ids. The first token of each comes with its
            prompt and does not count.
        v: Of the target; rounds are as wide as it reaches.

    Returns:
        None if nothing is known of v, or no token that counts is given.
    """
    n_tokens, time = 0, 0.0
    for prompt, text in texts:
        if len(text) < 2 or not v:
            continue
        drafts = ngram_drafts([*prompt, text[0]], text[1:])
        n_tokens += len(drafts)
        time += oracle_bound(drafts.right, v, cap=min(len(v) - 1, MAX_DRAFT)).time
    return n_tokens * v.of(1) / time if n_tokens else None


def promised_speed(
    rounds: Sequence[tuple[int, int]], gamma: int, v: DecodeTimes, draft_step: float
) -> float | None:
    """Return how many times faster than plain decoding Theorem 3.8 says that drafts of `gamma`
    tokens are, with alpha as these rounds had it (`specllama.measure.speed.alpha_of`).

    Args:
        rounds: Drafted and accepted tokens of each, where `gamma` tokens are drafted come what may:
            a drafter that is asked only when it is likely to be right shows no alpha.
        gamma: Most tokens of a draft.
        v: Of the target.
        draft_step: d, in the same unit.

    Returns:
        None if v does not reach gamma + 1.
    """
    if len(v) <= gamma:
        return None
    return measured_improvement_factor(alpha_of(rounds), gamma, v, draft_step)
