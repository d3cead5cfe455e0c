"""Rounds of `specllama.simulate` over texts whose right drafts are known, for tests of the planner
without a model or a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from folders import DATA
from numpy.typing import NDArray
from specllama._core import Source
from specllama._core.plan import Evidence, PlannedRound, Planner
from specllama.simulate import (
    MAX_DRAFT,
    Drafts,
    calibrated_planner,
    curve_of,
    fixed_time,
    planned_time,
    read_curves,
)

# seconds[n]: time of a decode of n tokens.
Curve = NDArray[np.float64]

SECOND = 0.05  # of a decode of one token, as in `planned_time`


def curves() -> dict[str, Curve]:
    """Return synthetic curves, and the measured ones of tests/data/curves.json."""
    n = range(1, MAX_DRAFT + 2)
    synthetic = {
        "flat": dict.fromkeys(n, 1.0),
        "linear": {k: 1.0 + 0.35 * (k - 1) for k in n},
        "steep": {k: float(k) for k in n},
        "staircase": {k: 1.0 + 0.8 * ((k - 1) // 8) for k in n},
    }
    measured = read_curves(DATA / "curves.json")
    ratios = {name: curve_of(points) for name, points in synthetic.items()} | measured
    return {name: SECOND * np.concatenate([[np.nan], ratio]) for name, ratio in ratios.items()}


@dataclass
class Text:
    """A text and the outcomes of one drafter.

    Attributes:
        right: Shape [n], bool: whether the draft token at this position is right, if those before
            it in its draft are.
        rate: Shape [n]: the probabilities from which `right` was drawn.
        evidence: Function of (i, k): the evidence of a draft of `k` tokens from position `i` on.
    """

    right: NDArray[np.bool_]
    rate: NDArray[np.float64]
    evidence: Callable[[int, int], Sequence[Evidence]]
    run: NDArray[np.int64] = field(init=False)  # [i]: number of right tokens from i on

    def __post_init__(self) -> None:
        n = len(self.right)
        self.run = np.zeros(n + 1, dtype=np.int64)
        for i in range(n - 1, -1, -1):
            self.run[i] = self.run[i + 1] + 1 if self.right[i] else 0

    def __len__(self) -> int:
        return len(self.right)

    @cached_property
    def drafts(self) -> Drafts:
        """Return the same for the package's simulation, with every draft at the maximum length."""
        evidence = [list(self.evidence(i, MAX_DRAFT)) for i in range(len(self))]
        right = np.minimum(self.run[:-1], MAX_DRAFT)
        return Drafts(0, np.full(len(self), MAX_DRAFT), right, evidence)


def text_of(rate: NDArray[np.float64], seed: int, evidence: Evidence | None = None) -> Text:
    """Return a text with a given acceptance at each position, and the same evidence everywhere."""
    rng = np.random.default_rng(seed)
    same = [evidence or Evidence(Source.ngram, 4, 1.0)] * MAX_DRAFT
    return Text(rng.random(len(rate)) < rate, rate, lambda _, k: same[:k])


def copied_text(n: int, seed: int, curve: Callable[[int], float]) -> Text:
    """Return a text whose acceptance depends on the length of the match: `curve(length)`. The
    length grows by 1 with each right token and is 1 after a wrong one."""
    rng = np.random.default_rng(seed)
    rate, right, length = np.zeros(n), np.zeros(n, dtype=bool), np.ones(n + 1, dtype=int)
    for i in range(n):
        rate[i] = curve(int(length[i]))
        right[i] = rng.random() < rate[i]
        length[i + 1] = length[i] + 1 if right[i] else 1
    chain = [Evidence(Source.match, m, 1.0) for m in range(n + MAX_DRAFT + 2)]
    return Text(right, rate, lambda i, k: chain[length[i] : length[i] + k])


def fixed(text: Text, curve: Curve, n_draft: int, start: int = 0, step: float = 0.0) -> float:
    """Return seconds per token with drafts of `n_draft` tokens; `step`: seconds to draft one."""
    rest = Drafts(start, text.drafts.length[start:], text.drafts.right[start:], [])
    cost = curve[1:] + step * np.arange(MAX_DRAFT + 1)
    return fixed_time(rest, cost, n_draft) / len(rest)


def best_fixed(text: Text, curve: Curve, start: int = 0, step: float = 0.0) -> float:
    """Return seconds per token with the draft length that is best in hindsight."""
    return min(fixed(text, curve, g, start, step) for g in range(MAX_DRAFT + 1))


def phase_oracle(text: Text, curve: Curve, start: int = 0) -> float:
    """Return seconds per token of a planner that knows the acceptance rate at each position, and
    drafts the best length for a constant rate."""
    best = {
        a: int(np.argmax(np.cumsum(a ** np.arange(MAX_DRAFT + 1)) / curve[1:]))
        for a in set(text.rate.tolist())
    }
    i, seconds = start, 0.0
    while i < len(text):
        n_draft = best[float(text.rate[i])]
        seconds += float(curve[n_draft + 1])
        i += min(n_draft, int(text.run[i])) + 1
    return seconds / (i - start)


@dataclass
class Run:
    """The result of a simulated run."""

    seconds_per_token: float
    drafted: list[int]  # per round, tokens verified


class Watched:
    """A planner that gets inexact times, and whose rounds are recorded."""

    def __init__(
        self, planner: Planner, report: Callable[[int, float], tuple[float, float]]
    ) -> None:
        self._planner = planner
        self._report = report
        self.rounds: list[tuple[int, int, float]] = []  # position, drafted tokens, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._planner, name)

    def observe_decode(self, n: int, n_context: int, seconds: float) -> None:
        took, reported = self._report(n_context, seconds)
        self.rounds.append((n_context, n - 1, took))
        self._planner.observe_decode(n, n_context, reported)


def planned(
    text: Text,
    curve: Curve,
    planner: Planner,
    *,
    seed: int = 0,
    noise: float = 0.05,
    start: int = 0,
    outliers: float = 0.0,
    slowness: Callable[[int], float] = lambda i: 1.0,
) -> Run:
    """Run the planner over the text, with every draft at the maximum length; time counts from token
    `start` on.

    Args:
        curve: Curve of the machine.
        noise: Standard deviation of the logarithm of the reported times' error.
        outliers: Share of reported times that are 50 times too long.
        slowness: Factor of the curve at a position of the text.
    """
    rng = np.random.default_rng([seed, 1])

    def report(position: int, seconds: float) -> tuple[float, float]:
        took = slowness(position) * seconds
        reported = took * float(np.exp(noise * rng.standard_normal()))
        if outliers and rng.random() < outliers:
            reported *= 50
        return took, reported

    watched = Watched(planner, report)
    planned_time(text.drafts, curve[1:] / SECOND, watched)
    counted = [(position, took) for position, _, took in watched.rounds if position >= start]
    return Run(
        sum(took for _, took in counted) / (len(text) - counted[0][0]),
        [drafted for _, drafted, _ in watched.rounds],
    )


def calibrated(curve: Curve) -> Planner:
    """Return a planner that knows what a session measures once."""
    return calibrated_planner(curve[1:] / SECOND)


def planned_with_model(
    text: Text,
    curve: Curve,
    planner: Planner,
    step: float,
    *,
    seed: int = 0,
    noise: float = 0.05,
    start: int = 0,
    catch_up: float = 0.0,
) -> Run:
    """Run the planner with a draft model, each token of which costs `step` seconds.

    Args:
        catch_up: Seconds for each token that it must process before its draft.
    """
    rng = np.random.default_rng([seed, 1])
    regime = planner.begin(0.0, 0)
    i, seconds, counted_from, seen = 0, 0.0, 0, 0
    run = Run(0.0, [])
    while i < len(text):
        if i < start:
            counted_from, seconds = i, 0.0
        evidence = text.evidence(i, MAX_DRAFT)
        before = PlannedRound(regime, i, n_unprocessed=max(i - seen, 0))
        planner.choose([before])
        n, spent = 0, 0.0
        while planner.should_continue(before, evidence[:n], spent):
            planner.observe_drafting(1, 1, 0, i + n, step * float(np.exp(noise * rng.normal())))
            spent += step + catch_up * (i + n - seen)
            n += 1
            seen = i + n
        planned = PlannedRound(
            regime, i, spent=spent, without_draft_model=before.choice if spent else None
        )
        planned.add(evidence[:n])
        planner.choose([planned])
        choice = planned.choice
        g = choice.n_draft
        accepted = min(g, int(text.run[i]))
        took = float(curve[g + 1])
        planner.observe_decode(g + 1, i, took * float(np.exp(noise * rng.normal())))
        planned.on_result(accepted, [min(accepted + 1, n, int(text.run[i]))])
        planner.learn(planned)
        run.drafted.append(g)
        seconds += took + spent
        i += accepted + 1
    run.seconds_per_token = seconds / (i - counted_from)
    return run
