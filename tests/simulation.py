"""Speculative decoding by arithmetic: rounds over a text in which it is known how far each draft
would be right, at costs that are given. For tests of the planner, without a model or a clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from specllama._core import Evidence, Planner, Situation, Source

MAX_DRAFT = 64

# seconds[n]: of a decode of n tokens.
Curve = NDArray[np.float64]


def curve_of(points: dict[int, float], second: float = 0.05) -> Curve:
    """A curve from v(n) / v(1) at some n, linear in between and behind; `second` is v(1)."""
    n = np.arange(MAX_DRAFT + 2)
    known = sorted(points)
    ratio = np.interp(n, known, [points[k] for k in known])
    if len(known) > 1:
        (a, b) = known[-2:]
        slope = (points[b] - points[a]) / (b - a)
        ratio = np.where(n > b, points[b] + slope * (n - b), ratio)
    return second * ratio


def curves() -> dict[str, Curve]:
    """Synthetic curves, and the measured ones of tests/data/curves.json."""
    n = range(1, MAX_DRAFT + 2)
    synthetic = {
        "flat": dict.fromkeys(n, 1.0),
        "linear": {k: 1.0 + 0.35 * (k - 1) for k in n},
        "steep": {k: float(k) for k in n},
        "staircase": {k: 1.0 + 0.8 * ((k - 1) // 8) for k in n},
    }
    measured = json.loads((Path(__file__).parent / "data" / "curves.json").read_text())
    read = {
        name: {int(k): v for k, v in points.items()}
        for name, points in measured.items()
        if name != "about"
    }
    return {name: curve_of(points) for name, points in (synthetic | read).items()}


@dataclass
class Text:
    """A text and one drafter's luck with it.

    Attributes:
        right: Shape [n], bool: whether the draft token at this position is right, when those before
            it in its draft are.
        rate: Shape [n]: the probabilities that `right` was drawn from.
        evidence: What the drafter would say of a draft of `k` tokens from position `i` on.
    """

    right: NDArray[np.bool_]
    rate: NDArray[np.float64]
    evidence: Callable[[int, int], Sequence[Evidence]]
    run: NDArray[np.int64] = field(init=False)  # [i]: how many tokens from i on are right

    def __post_init__(self) -> None:
        n = len(self.right)
        self.run = np.zeros(n + 1, dtype=np.int64)
        for i in range(n - 1, -1, -1):
            self.run[i] = self.run[i + 1] + 1 if self.right[i] else 0

    def __len__(self) -> int:
        return len(self.right)


def text_of(rate: NDArray[np.float64], seed: int, evidence: Evidence | None = None) -> Text:
    """A text with a given acceptance at each position, and the same evidence everywhere."""
    rng = np.random.default_rng(seed)
    same = [evidence or Evidence(Source.ngram, 4, 1.0)] * MAX_DRAFT
    return Text(rng.random(len(rate)) < rate, rate, lambda _, k: same[:k])


def copied_text(n: int, seed: int, curve: Callable[[int], float]) -> Text:
    """A text whose acceptance depends on the length of the match: `curve(length)`, the length
    growing by each right token and 1 after a wrong one."""
    rng = np.random.default_rng(seed)
    rate, right, length = np.zeros(n), np.zeros(n, dtype=bool), np.ones(n + 1, dtype=int)
    for i in range(n):
        rate[i] = curve(int(length[i]))
        right[i] = rng.random() < rate[i]
        length[i + 1] = length[i] + 1 if right[i] else 1
    chain = [Evidence(Source.match, m, 1.0) for m in range(n + MAX_DRAFT + 2)]
    return Text(right, rate, lambda i, k: chain[length[i] : length[i] + k])


def fixed(text: Text, curve: Curve, n_draft: int, start: int = 0, step: float = 0.0) -> float:
    """Seconds per token with drafts of `n_draft` tokens; `step`: seconds to draft one."""
    i, seconds = start, 0.0
    cost = float(curve[n_draft + 1]) + n_draft * step
    while i < len(text):
        i += min(n_draft, int(text.run[i])) + 1
        seconds += cost
    return seconds / (i - start)


def best_fixed(text: Text, curve: Curve, start: int = 0, step: float = 0.0) -> float:
    """Seconds per token with the draft length that is best in hindsight."""
    return min(fixed(text, curve, g, start, step) for g in range(MAX_DRAFT + 1))


def phase_oracle(text: Text, curve: Curve, start: int = 0) -> float:
    """Seconds per token of who knows the acceptance rate at each position, and drafts as is best
    where it is constant."""
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
    """What a planned run took."""

    seconds_per_token: float
    drafted: list[int]  # per round, tokens verified
    probes: list[bool]  # per round


def planned(
    text: Text,
    curve: Curve | Callable[[int], Curve],
    planner: Planner,
    *,
    seed: int = 0,
    noise: float = 0.05,
    start: int = 0,
    outliers: float = 0.0,
) -> Run:
    """Run the planner over the text, every draft at the cap; time counts from token `start` on.

    Args:
        curve: Of the machine; or of the machine at a position of the text.
        noise: Standard deviation of the logarithm of what the planner is told about times.
        outliers: Share of the times that it is told 50 times too long.
    """
    rng = np.random.default_rng([seed, 1])
    phase = planner.begin(0.0, 0)
    i, seconds, counted_from = 0, 0.0, 0
    run = Run(0.0, [], [])
    while i < len(text):
        if i < start:
            counted_from, seconds = i, 0.0
        now = curve(i) if callable(curve) else curve
        draft = text.evidence(i, MAX_DRAFT)
        situation = Situation(n_tokens=i)
        choice = planner.choose(situation, phase, [draft])
        g = choice.n_draft
        accepted = min(g, int(text.run[i]))
        took = float(now[g + 1])
        told = took * float(np.exp(noise * rng.standard_normal()))
        if outliers and rng.random() < outliers:
            told *= 50
        planner.observe_decode(g + 1, i, told)
        planner.observe(phase, i, draft, min(accepted + 1, int(text.run[i])), accepted + 1)
        planner.settle(phase, situation, g, accepted)
        run.drafted.append(g)
        run.probes.append(choice.probe)
        seconds += took
        i += accepted + 1
    run.seconds_per_token = seconds / (i - counted_from)
    return run


def calibrate(planner: Planner, curve: Curve, n_decodes: int = 10) -> None:
    """What a session does before its first request: decodes of the widths worth measuring."""
    for _ in range(n_decodes):
        n = planner.cost.next_probe(MAX_DRAFT + 1)
        if n:
            planner.cost.observe(n, 0, float(curve[n]))


def planned_with_model(
    text: Text,
    curve: Curve,
    planner: Planner,
    step: float,
    *,
    seed: int = 0,
    noise: float = 0.05,
    start: int = 0,
) -> Run:
    """Run the planner with a draft model, whose every token costs `step` seconds."""
    rng = np.random.default_rng([seed, 1])
    phase = planner.begin(0.0, 0)
    i, seconds, counted_from = 0, 0.0, 0
    run = Run(0.0, [], [])
    while i < len(text):
        if i < start:
            counted_from, seconds = i, 0.0
        evidence = text.evidence(i, MAX_DRAFT)
        plain = planner.choose(Situation(n_tokens=i), phase, [])
        n, spent = 0, 0.0
        while planner.another(Situation(n_tokens=i, spent=spent), phase, evidence[:n], plain):
            planner.observe_draft_decode(1, i + n, step * float(np.exp(noise * rng.normal())))
            spent += step
            n += 1
        situation = Situation(n_tokens=i, spent=spent)
        choice = planner.choose(situation, phase, [evidence[:n]])
        g = choice.n_draft
        accepted = min(g, int(text.run[i]))
        took = float(curve[g + 1])
        planner.observe_decode(g + 1, i, took * float(np.exp(noise * rng.normal())))
        right = min(accepted + 1, n, int(text.run[i]))
        planner.observe(phase, i, evidence[:n], right, accepted + 1)
        planner.settle(phase, situation, g, accepted)
        run.drafted.append(g)
        run.probes.append(choice.probe)
        seconds += took + spent
        i += accepted + 1
    run.seconds_per_token = seconds / (i - counted_from)
    return run
