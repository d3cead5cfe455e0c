"""Arithmetic on measured numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specllama.measure.speed import alpha_of
from specllama.simulate import MAX_DRAFT, ngram_drafts
from specllama.theory import DecodeTimes, measured_improvement_factor, oracle_bound

_RESAMPLES = 2000


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the median of `values` and a confidence interval around it, by the percentile
    bootstrap (Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13). The
    random numbers are always the same.

    Args:
        values: At least one value.
        level: Probability that the interval covers the median, in (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(0).integers(array.size, size=(_RESAMPLES, array.size))
    medians = np.median(array[picks], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(array)), float(low), float(high)


def decode_curve(decodes: Iterable[tuple[int, float]], before: Sequence[float] = ()) -> DecodeTimes:
    """Return the seconds v(n) up to the widest known decode: medians of the measured times, and
    interpolation between them. Empty if there was no decode of one token.

    Args:
        decodes: Tokens and seconds of each decode.
        before: v(n) for n = 1, 2, ... from an earlier measurement; 0: not measured. It is scaled to
            the present v(1) and gives the cost of widths that did not occur. Otherwise the bound
            would ignore widths that a too careful planner never used.
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
    """Return the highest possible speed, relative to plain decoding, for texts with the n-gram
    drafter's drafts: that of a planner that knows which tokens will be accepted.

    Args:
        texts: Prompts and the texts after them, as token ids. The first token of each text is
            generated with the prompt and does not count.
        v: Decode times of the target; rounds are at most as wide as these.

    Returns:
        None if v is empty, or no token counts.
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
    """Return the speed, relative to plain decoding, that Theorem 3.8 predicts for drafts of `gamma`
    tokens with the alpha of these rounds (`specllama.measure.speed.alpha_of`).

    Args:
        rounds: Drafted and accepted tokens of each round. Every round must draft `gamma` tokens: if
            a drafter were used only when it is likely to be right, its alpha would be too high.
        gamma: Maximum number of tokens of a draft.
        v: Decode times of the target.
        draft_step: d, in the same unit.

    Returns:
        None if v does not reach gamma + 1.
    """
    if len(v) <= gamma:
        return None
    return measured_improvement_factor(alpha_of(rounds), gamma, v, draft_step)
