"""Compares speculative runs with plain runs of the same prompts: whether and where their tokens
differ, and how close the candidates were."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specllama.measure.sequences import first_difference
from specllama.requests.stream import Generation

N_LIKELIEST = 100
"""Candidates to record; many, because above temperature 0 the other token may be unlikely."""


@dataclass(frozen=True)
class Comparison:
    """The plain and the speculative continuation of a prompt, with the same seed.

    Attributes:
        first: Index of the first generated token in which the runs differ; None if they are equal.
        gap: Distance in nats between the log-probabilities of the two candidates there, in the
            model's own distribution of the plain run. Above temperature 0, noise decides between
            them, so the gap may be wide. None if one of the runs ended there, or if a candidate is
            not among the 100 likeliest.
        exact: Whether both runs were in the exact configuration.
        n_tokens: Tokens of the plain run.
        acceptance_rate: Acceptance rate of the speculative run.
    """

    first: int | None
    gap: float | None
    exact: bool
    n_tokens: int
    acceptance_rate: float


@dataclass(frozen=True)
class Report:
    """A summary of many comparisons.

    Attributes:
        count: Number of comparisons.
        exact: How many were in the exact configuration.
        differ: How many differ.
        first: Lower quartile, median and upper quartile of their `first`; empty if none differs.
        gap_median, gap_largest: Median and maximum of the known gaps, nats; None if none is known.
        unknown_gaps: Differences whose gap is unknown.
        n_tokens: Tokens of all plain runs together.
    """

    count: int
    exact: int
    differ: int
    first: list[float]
    gap_median: float | None
    gap_largest: float | None
    unknown_gaps: int
    n_tokens: int


def compare(plain: Generation, speculative: Generation) -> Comparison:
    """Compare two runs of one prompt; the plain one must have log-probabilities."""
    first = first_difference(plain.tokens, speculative.tokens)
    gap = None
    if first is not None and first < min(len(plain.tokens), len(speculative.tokens)):
        there = plain.logprobs[first]
        other = dict(there.top).get(speculative.tokens[first])
        gap = None if other is None else abs(there.logprob - other)
    return Comparison(
        first,
        gap,
        plain.stats.exact and speculative.stats.exact,
        len(plain.tokens),
        speculative.stats.acceptance_rate,
    )


def summarise(comparisons: Sequence[Comparison]) -> Report:
    """Summarise at least one comparison."""
    firsts = [one.first for one in comparisons if one.first is not None]
    gaps = [one.gap for one in comparisons if one.gap is not None]
    return Report(
        count=len(comparisons),
        exact=sum(one.exact for one in comparisons),
        differ=len(firsts),
        first=np.quantile(firsts, (0.25, 0.5, 0.75)).tolist() if firsts else [],
        gap_median=statistics.median(gaps) if gaps else None,
        gap_largest=max(gaps, default=None),
        unknown_gaps=len(firsts) - len(gaps),
        n_tokens=sum(one.n_tokens for one in comparisons),
    )


def text(report: Report) -> str:
    """Return a report in words."""
    lines = [
        f"{report.differ} of {report.count} generations differ from plain decoding "
        f"({report.n_tokens} tokens; {report.exact} in the exact configuration)"
    ]
    if report.differ:
        low, middle, high = (f"{x:g}" for x in report.first)
        lines.append(f"first different token: quartiles {low}, {middle}, {high}")
    if report.gap_median is not None and report.gap_largest is not None:
        lines.append(
            f"gap between the two candidates there: median {report.gap_median:.2g}, largest "
            f"{report.gap_largest:.2g} nats"
        )
    if report.unknown_gaps:
        lines.append(
            f"gap unknown for {report.unknown_gaps}: one ended, or a candidate is not among the "
            f"{N_LIKELIEST} likeliest"
        )
    return "\n".join(lines)
