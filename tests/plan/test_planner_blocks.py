"""The planner with block drafters, computed as in benchmarks/bench_blocks.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
from folders import ROOT
from specllama._core import Source
from specllama._core.plan import CurvePoints, Evidence, PlannedRound, Planner


@pytest.mark.parametrize("n_seeds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_planned_blocks_are_nearly_as_fast_as_the_best_fixed_length(n_seeds: int) -> None:
    program = ROOT / "benchmarks" / "bench_blocks.py"
    done = subprocess.run(
        [sys.executable, str(program), "--seeds", str(n_seeds)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 9 * 8  # profiles and costs of a block, for each machine
    for line in lines:
        words = line.split()
        planned, best = (float(words[words.index(name) - 1]) for name in ("planned", "best"))
        assert planned >= 0.98, line
        assert planned >= 0.95 * best, line


def planner(tokens_per_step: int, step: float) -> Planner:
    """Return a planner for decodes of the same cost at every width, with these draft model
    steps."""
    one = Planner()
    one.cost.restore(CurvePoints([1.0] * 64))
    one.set_tokens_per_step(tokens_per_step)
    one.draft_cost.observe(1, 0, step)
    return one


def test_a_block_pays_when_as_many_single_steps_do_not() -> None:
    for tokens_per_step, asks in ((1, False), (15, True)):
        one = planner(tokens_per_step, 1.2)
        planned = PlannedRound(one.begin(0.0, 100), 100)
        one.choose([planned])
        assert one.should_continue(planned, []) == asks


def test_no_draft_is_expected_to_be_longer_than_a_block() -> None:
    one = planner(4, 0.1)
    planned = PlannedRound(one.begin(0.0, 100), 100)
    one.choose([planned])
    sure = [Evidence(Source.model, 0, 0.99)]
    assert one.should_continue(planned, 3 * sure)
    assert not one.should_continue(planned, 4 * sure)


def test_break_even_counts_the_decode_of_a_block_once() -> None:
    # Four tokens in the time of two decodes pay if a + a^2 + a^3 + a^4 > 1.
    assert planner(4, 1.0).break_even(100) == pytest.approx(0.52, abs=0.05)
    assert planner(1, 1.0).break_even(100) > 1
