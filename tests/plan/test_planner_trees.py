"""Branches that the planner verifies with a draft, and what it learns from them."""

from __future__ import annotations

import numpy as np
import pytest
from specllama._core import Source
from specllama._core.plan import CurvePoints, Evidence, PlannedRound, Planner, TextRegime

FLAT = [1 + 0.002 * n for n in range(64)]
STEEP = [1.0 + 0.6 * n for n in range(64)]


def planner(seconds: list[float]) -> Planner:
    one = Planner()
    one.cost.restore(CurvePoints(seconds))
    return one


def model(*confidences: float) -> list[Evidence]:
    return [Evidence(Source.model, 0, confidence) for confidence in confidences]


def comb(draft: list[Evidence], confidence: float) -> list[tuple[Evidence, int]]:
    """Return an alternative for every position of a draft."""
    return [(Evidence(Source.model, 0, confidence), parent) for parent in range(-1, len(draft) - 1)]


def turn_of(
    regime: TextRegime,
    draft: list[Evidence],
    branches: list[tuple[Evidence, int]],
    n_tokens: int = 100,
) -> PlannedRound:
    planned = PlannedRound(regime, n_tokens)
    planned.add(draft, alternatives=branches)
    return planned


def teach(one: Planner, first: float, second: float, n: int = 2000) -> TextRegime:
    """Report first candidates right with this probability, and second ones where the first are
    wrong."""
    rng = np.random.default_rng(1)
    regime = one.begin(0.0, 0)
    draft = model(0.5)
    for n_tokens in range(1, n):
        planned = turn_of(regime, draft, comb(draft, 0.7), n_tokens)
        one.choose([planned])
        right = rng.random() < first
        if not right:
            planned.on_alternative(0, 0, rng.random() < second)
        planned.on_result(int(right), [int(right)])
        one.learn(planned)
    return regime


def test_branches_are_verified_if_width_is_free() -> None:
    one = planner(FLAT)
    regime = teach(one, 0.5, 0.6)
    draft = model(0.5, 0.5, 0.5)
    planned = turn_of(regime, draft, comb(draft, 0.7), 3000)
    one.choose([planned])
    assert set(planned.rows) == set(range(6))
    assert planned.choice.n_draft == 6
    chain = turn_of(regime, draft, [], 3000)
    one.choose([chain])
    assert planned.choice.tokens > chain.choice.tokens
    assert planned.choice.time_saved > chain.choice.time_saved


@pytest.mark.parametrize("curve", ["flat", "steep"])
def test_branches_are_not_verified_if_wrong_or_expensive(curve: str) -> None:
    one = planner(FLAT if curve == "flat" else STEEP)
    regime = teach(one, 0.9, 0.0 if curve == "flat" else 0.5)
    draft = model(0.5, 0.5)
    planned = turn_of(regime, draft, comb(draft, 0.7), 3000)
    one.choose([planned])
    # An alternative that is never right adds almost nothing, whatever it costs.
    branches = [row for row in planned.rows if row >= 2]
    assert curve == "flat" or branches == []
    chain = turn_of(regime, draft, [], 3000)
    one.choose([chain])
    assert planned.choice.tokens - chain.choice.tokens < 0.02


def test_every_row_of_a_tree_has_its_parent() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        curve = np.sort(rng.uniform(1, rng.uniform(1.1, 8), 64)).tolist()
        one = planner(curve)
        regime = one.begin(0.0, 0)
        n = int(rng.integers(1, 8))
        draft = model(*rng.uniform(0, 1, n))
        branches = []
        for i in range(int(rng.integers(0, 10))):
            parent = int(rng.integers(-1, n + i))
            source = Source.match if rng.random() < 0.5 else Source.model
            branches.append((Evidence(source, 3, float(rng.uniform(0, 1))), parent))
        planned = turn_of(regime, draft, branches)
        one.choose([planned])
        parents = [*range(-1, n - 1), *(parent for _, parent in branches)]
        assert len(planned.rows) == planned.choice.n_draft == len(set(planned.rows))
        for at, row in enumerate(planned.rows):
            assert parents[row] < 0 or parents[row] in planned.rows[:at]
        chain = turn_of(regime, draft, [])
        one.choose([chain])
        assert planned.choice.time_saved >= chain.choice.time_saved - 1e-9


def test_trees_of_several_sequences_share_a_decode() -> None:
    one = planner(FLAT)
    regimes = [teach(one, 0.5, 0.6), teach(one, 0.5, 0.6)]
    draft = model(0.5, 0.5)
    planned_rounds = [turn_of(regime, draft, comb(draft, 0.7), 3000) for regime in regimes]
    one.choose(planned_rounds)
    for planned in planned_rounds:
        assert set(planned.rows) == {0, 1, 2, 3}
