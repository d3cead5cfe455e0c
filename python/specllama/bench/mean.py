"""The mean over several workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Literal

from specllama.bench.measuring import Result


@dataclass(frozen=True)
class MeanScore:
    """The result of a contestant over all workloads.

    Attributes:
        contestant: Its name.
        ratio, first_token_ratio: Geometric means over the workloads, all with the same weight.
    """

    contestant: str
    ratio: float
    first_token_ratio: float


@dataclass(frozen=True)
class Mean:
    """The results of several workloads together.

    Attributes:
        workload: "mean", instead of the workload's name as in `Result`.
        n_workloads: Number of workloads.
        scores: One per contestant, plain first.
    """

    workload: Literal["mean"]
    n_workloads: int
    scores: list[MeanScore]


def mean_of(results: Sequence[Result]) -> Mean:
    """Return the geometric means over at least one workload, all with the same contestants."""
    by_contestant = zip(*(result.scores for result in results), strict=True)
    return Mean(
        workload="mean",
        n_workloads=len(results),
        scores=[
            MeanScore(
                contestant=scores[0].contestant,
                ratio=geometric_mean(score.ratio for score in scores),
                first_token_ratio=geometric_mean(score.first_token_ratio for score in scores),
            )
            for scores in by_contestant
        ],
    )
