"""Branches that the planner verifies with a draft, and what it learns from them."""

from __future__ import annotations

import numpy as np
import pytest
from specllama._core import Source
from specllama._core.plan import CurvePoints, Evidence, Phase, Planner, Turn

FLAT = [1 + 0.002 * n for n in range(64)]
STEEP = [1.0 + 0.6 * n for n in range(64)]


def planner(seconds: list[float]) -> Planner:
    one = Planner()
    one.cost.restore(CurvePoints(seconds))
    return one


def model(*confidences: float) -> list[Evidence]:
    return [Evidence(Source.model, 0, confidence) for confidence in confidences]


def comb(draft: list[Evidence], confidence: float) -> list[tuple[Evidence, int]]:
    """A second guess at every position."""
    return [(Evidence(Source.model, 0, confidence), parent) for parent in range(-1, len(draft) - 1)]


def turn_of(
    phase: Phase, draft: list[Evidence], sides: list[tuple[Evidence, int]], n_tokens: int = 100
) -> Turn:
    turn = Turn(phase, n_tokens)
    turn.add(draft, sides=sides)
    return turn


def teach(one: Planner, first: float, second: float, n: int = 2000) -> Phase:
    """Have first guesses right so often, and second ones so often where the first are wrong."""
    rng = np.random.default_rng(1)
    phase = one.begin(0.0, 0)
    draft = model(0.5)
    for n_tokens in range(1, n):
        turn = turn_of(phase, draft, comb(draft, 0.7), n_tokens)
        one.choose([turn])
        right = rng.random() < first
        if not right:
            turn.hear(0, 0, rng.random() < second)
        turn.came(int(right), [int(right)])
        one.learn(turn)
    return phase


def test_branches_are_verified_if_width_is_free() -> None:
    one = planner(FLAT)
    phase = teach(one, 0.5, 0.6)
    draft = model(0.5, 0.5, 0.5)
    turn = turn_of(phase, draft, comb(draft, 0.7), 3000)
    one.choose([turn])
    assert set(turn.rows) == set(range(6))
    assert turn.choice.n_draft == 6
    chain = turn_of(phase, draft, [], 3000)
    one.choose([chain])
    assert turn.choice.tokens > chain.choice.tokens
    assert turn.choice.saved > chain.choice.saved


@pytest.mark.parametrize("curve", ["flat", "steep"])
def test_branches_are_not_verified_if_wrong_or_expensive(curve: str) -> None:
    one = planner(FLAT if curve == "flat" else STEEP)
    phase = teach(one, 0.9, 0.0 if curve == "flat" else 0.5)
    draft = model(0.5, 0.5)
    turn = turn_of(phase, draft, comb(draft, 0.7), 3000)
    one.choose([turn])
    # What is never right is worth next to nothing, whatever it costs.
    sides = [row for row in turn.rows if row >= 2]
    assert curve == "flat" or sides == []
    chain = turn_of(phase, draft, [], 3000)
    one.choose([chain])
    assert turn.choice.tokens - chain.choice.tokens < 0.02


def test_every_row_of_a_tree_has_its_parent() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        curve = np.sort(rng.uniform(1, rng.uniform(1.1, 8), 64)).tolist()
        one = planner(curve)
        phase = one.begin(0.0, 0)
        n = int(rng.integers(1, 8))
        draft = model(*rng.uniform(0, 1, n))
        sides = []
        for i in range(int(rng.integers(0, 10))):
            parent = int(rng.integers(-1, n + i))
            source = Source.match if rng.random() < 0.5 else Source.model
            sides.append((Evidence(source, 3, float(rng.uniform(0, 1))), parent))
        turn = turn_of(phase, draft, sides)
        one.choose([turn])
        parents = [*range(-1, n - 1), *(parent for _, parent in sides)]
        assert len(turn.rows) == turn.choice.n_draft == len(set(turn.rows))
        for at, row in enumerate(turn.rows):
            assert parents[row] < 0 or parents[row] in turn.rows[:at]
        chain = turn_of(phase, draft, [])
        one.choose([chain])
        assert turn.choice.saved >= chain.choice.saved - 1e-9


def test_trees_of_several_sequences_share_a_decode() -> None:
    one = planner(FLAT)
    phases = [teach(one, 0.5, 0.6), teach(one, 0.5, 0.6)]
    draft = model(0.5, 0.5)
    turns = [turn_of(phase, draft, comb(draft, 0.7), 3000) for phase in phases]
    one.choose(turns)
    for turn in turns:
        assert set(turn.rows) == {0, 1, 2, 3}
