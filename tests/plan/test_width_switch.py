"""Decodes that cost more if the one before had another number of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from answers import answers
from bench_planner import CURVES, Costs, Machine, read_costs, time_of
from specllama._core import Source
from specllama._core.plan import CurvePoints, Evidence, PlannedRound, Planner
from specllama.simulate import MAX_DRAFT

GPUS = CURVES.parent / "gpu.json"


def planner_of(change: float, **options: bool) -> Planner:
    """A plain decode takes a second; wider ones take little more than one of two tokens."""
    planner = Planner()
    planner.cost.restore(CurvePoints([1.0, *(1.2 + 0.01 * n for n in range(MAX_DRAFT))]))
    planner.cost.set_width_switch(change, **options)
    for _ in range(4):
        planner.observe_decode(1, 0, 1.0)
    return planner


def choose(planner: Planner, draft: list[Evidence]) -> tuple[int, int]:
    """Return the tokens of the draft and of the padding."""
    planned = PlannedRound(planner.begin(), 0)
    planned.add(draft)
    planner.choose([planned])
    return planned.choice.n_draft, planned.choice.n_padding


def copy(n: int, length: int) -> list[Evidence]:
    return [Evidence(Source.match, length + i) for i in range(n)]


def test_an_uncertain_draft_does_not_change_the_width() -> None:
    doubtful, sure = copy(3, 2), copy(MAX_DRAFT, 60)
    assert choose(planner_of(0), doubtful) == (3, 0)
    assert choose(planner_of(2), doubtful) == (0, 0)
    n_draft, n_padding = choose(planner_of(2), sure)
    assert n_draft > 8
    assert n_padding == 0


def test_an_uncertain_draft_is_padded_to_the_base_width() -> None:
    doubtful = copy(3, 2)
    planner = planner_of(2)
    planner.observe_decode(17, 0, 1.32)
    assert choose(planner, doubtful) == (3, 13)
    assert choose(planner, []) == (0, 0)  # back to width 1
    unpadded = planner_of(2, pads=False)
    unpadded.observe_decode(17, 0, 1.32)
    assert choose(unpadded, doubtful)[1] == 0


def test_the_planner_learns_nothing_from_decodes_slowed_by_a_width_change() -> None:
    planner = planner_of(2)
    before = planner.cost.seconds(8)
    for seconds in (3.0, 3.0):
        planner.observe_decode(8, 0, seconds)
    assert planner.cost.seconds(8) == before
    planner.observe_decode(8, 0, 1.5)
    assert before < planner.cost.seconds(8) < 1.5


def test_the_width_change_cost_is_saved_with_the_curve() -> None:
    planner = planner_of(2)
    points = planner.cost.points()
    assert points.width_switch == 2
    other = Planner()
    other.cost.restore(points)
    assert other.cost.points().width_switch == 2
    other.cost.restore(CurvePoints(points.seconds, width_switch=float("nan")))
    assert other.cost.points().width_switch == 0


def speeds(costs: Costs) -> tuple[float, float]:
    """Return the geometric mean and the 5th percentile for single requests."""
    times = [time_of(one, Machine(costs, 0)) for one in answers("first")]
    found = [len(one) / one[-1] for one in times]
    return float(np.exp(np.log(found).mean())), float(np.percentile(found, 5))


@pytest.mark.parametrize("name", ["h100_7b", "h100_1.5b"])
def test_a_planner_that_knows_the_width_change_cost_is_faster(name: str) -> None:
    known, unknown = (speeds(read_costs(GPUS, told=one)[name]) for one in (True, False))
    assert known[0] > 1.03 * unknown[0]
    assert known[1] > 1.1 * unknown[1]
