"""The cost curve learns v(n) from decodes and keeps its shape."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulation import curves
from specllama import ArgumentError
from specllama._core.plan import CostCurve, CurvePoints

CURVES = curves()


def learned(name: str, widths: list[int], *, times: int = 1, factor: float = 1.0) -> CostCurve:
    curve = CostCurve()
    for _ in range(times):
        for n in widths:
            curve.observe(n, 0, factor * float(CURVES[name][n]))
    return curve


@pytest.mark.parametrize("name", CURVES)
def test_the_cost_curve_meets_measured_points(name: str) -> None:
    widths = [1, 2, 4, 8, 16, 32, 64]
    curve = learned(name, widths, times=3)
    for n in widths:
        assert curve.seconds(n) == pytest.approx(CURVES[name][n], rel=0.06)


@pytest.mark.parametrize("name", CURVES)
def test_costs_between_measured_widths_are_interpolated(name: str) -> None:
    curve = learned(name, [1, 2, 4, 8, 16, 32, 64], times=3)
    for n in range(1, 65):
        lower, upper = 2 ** int(math.log2(n)), 2 ** math.ceil(math.log2(n))
        around = CURVES[name][[lower, upper]]
        assert 0.8 * around.min() < curve.seconds(n) < 1.25 * around.max()


def test_a_stair_of_the_cost_curve_is_learned() -> None:
    curve = learned("staircase", list(range(1, 34)), times=4)
    truth = CURVES["staircase"]
    for n in range(1, 34):
        assert curve.seconds(n) == pytest.approx(truth[n], rel=0.08)
    assert curve.seconds(9) > 1.6 * curve.seconds(8)


def test_an_unmeasured_curve_is_monotone_and_uncertain() -> None:
    curve = CostCurve()
    ratios = [curve.seconds(n) / curve.seconds(1) for n in range(1, 66)]
    assert ratios == sorted(ratios)
    assert 1.2 < ratios[1] < 2
    assert curve.doubt(64) > curve.doubt(2) > 0.2


@pytest.mark.parametrize("second", [1e-4, 0.05, 30.0])
def test_the_first_measurement_scales_the_cost_curve(second: float) -> None:
    curve = CostCurve()
    curve.observe(1, 0, second)
    assert curve.seconds(1) == pytest.approx(second, rel=0.02)
    assert 1.2 * second < curve.seconds(2) < 2 * second


def test_an_outlier_changes_the_curve_little() -> None:
    curve = learned("q8_0", [1, 2, 4, 8], times=20)
    before = np.array([curve.seconds(n) for n in range(1, 66)])
    curve.observe(4, 0, 50 * float(CURVES["q8_0"][4]))
    after = np.array([curve.seconds(n) for n in range(1, 66)])
    assert np.abs(after / before - 1).max() < 0.1


def test_a_slower_machine_raises_all_points_of_the_curve() -> None:
    curve = learned("q8_0", [1, 2, 4, 8, 16, 32], times=5)
    before = np.array([curve.seconds(n) for n in (1, 2, 4, 8, 16, 32)])
    for _ in range(60):
        curve.observe(4, 0, 2 * float(CURVES["q8_0"][4]))
    after = np.array([curve.seconds(n) for n in (1, 2, 4, 8, 16, 32)])
    assert curve.seconds(4) == pytest.approx(2 * CURVES["q8_0"][4], rel=0.03)
    assert (after / before > 1.6).all()


def test_a_cost_curve_of_another_shape_is_relearned() -> None:
    curve = learned("flat", [1, 2, 4, 8, 16], times=20)
    for _ in range(400):
        for n in (1, 8):
            curve.observe(n, 0, float(CURVES["linear"][n]))
    assert curve.seconds(8) / curve.seconds(1) == pytest.approx(CURVES["linear"][8] / 0.05, rel=0.1)


@pytest.mark.parametrize("per_token", [0.0, 2e-6])
def test_the_slope_over_the_context_is_learned(per_token: float) -> None:
    rng = np.random.default_rng(3)
    truth = CURVES["bf16"]

    def seconds(n: int, context: int) -> float:
        return float(truth[n]) + (8e-6 + per_token * (n - 1)) * context

    curve = CostCurve()
    for _ in range(6):  # requests
        for context in range(0, 4000, 10):
            n = int(rng.choice([1, 4, 8]))
            curve.observe(n, context, seconds(n, context) * float(np.exp(0.05 * rng.normal())))
    for n in (1, 4, 8):
        for context in (0, 2000, 4000):
            assert curve.seconds(n, context) == pytest.approx(seconds(n, context), rel=0.12)


def test_noise_gives_no_slope_over_the_context() -> None:
    rng = np.random.default_rng(4)
    curve = CostCurve()
    for context in range(2000):
        curve.observe(1, context, 0.05 * float(np.exp(0.05 * rng.normal())))
    assert curve.seconds(1, 2000) == pytest.approx(curve.seconds(1, 0), rel=0.1)


def test_saved_points_restore_the_cost_curve() -> None:
    first = learned("q8_0", [1, 2, 4, 8, 16, 32], times=5)
    points = first.points()
    assert [n + 1 for n, seconds in enumerate(points.seconds) if seconds] == [1, 2, 4, 8, 16, 32]
    second = CostCurve()
    second.restore(
        CurvePoints(
            points.seconds, points.context_base, points.context_per_token, points.width_switch
        )
    )
    for n in (1, 2, 4, 8, 16, 32):
        assert second.seconds(n) == pytest.approx(first.seconds(n), rel=0.03)
    assert second.next_probe(32) not in (1, 2, 4, 8, 16, 32)
    # If the machine is busy, one slow decode raises the whole curve.
    second.observe(1, 0, 2 * first.seconds(1))
    assert second.seconds(8) > 1.6 * first.seconds(8)


def test_probes_double_in_width_and_end() -> None:
    curve = CostCurve()
    probed = []
    while n := curve.next_probe(40):
        probed.append(n)
        curve.observe(n, 0, float(CURVES["bf16"][n]))
    assert probed[:6] == [1, 2, 4, 8, 16, 32]
    assert len(probed) == len(set(probed)) <= 40
    assert CostCurve().next_probe(0) == 0


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e300, 1e-300])
def test_impossible_decode_times_are_ignored(seconds: float) -> None:
    curve = learned("bf16", [1, 2, 4])
    before = [curve.seconds(n) for n in range(1, 66)]
    curve.observe(2, 0, seconds)
    assert [curve.seconds(n) for n in range(1, 66)] == before
    curve.restore(CurvePoints([seconds] * 65, seconds, seconds))
    assert [curve.seconds(n) for n in range(1, 66)] == [
        CostCurve().seconds(n) for n in range(1, 66)
    ]


@pytest.mark.parametrize("damage", [2.0, 1e308, math.inf, math.nan, -1.0])
def test_impossible_values_of_a_saved_curve_are_ignored(damage: float) -> None:
    """A token of context costs less than a decode."""
    sound = CostCurve()
    sound.restore(CurvePoints([1.0] * 65))
    for points in (
        CurvePoints([1.0] * 65, context_base=damage),
        CurvePoints([1.0] * 65, context_per_token=damage),
        CurvePoints([1.0] * 65, width_switch=1e3 * damage),
    ):
        curve = CostCurve()
        curve.restore(points)
        for n in (1, 8, 65):
            assert curve.seconds(n, 1000) == sound.seconds(n, 1000)
        kept = curve.points()
        assert (kept.context_base, kept.context_per_token, kept.width_switch) == (0, 0, 0)


def test_impossible_widths_and_contexts_are_ignored() -> None:
    curve = learned("bf16", [1, 2, 4])
    before = [curve.seconds(n) for n in range(1, 66)]
    for n, context in ((0, 0), (-1, 0), (66, 0), (10**9, 0), (2, -1)):
        curve.observe(n, context, 1.0)
    assert [curve.seconds(n) for n in range(1, 66)] == before
    assert curve.seconds(0) == curve.seconds(1) == curve.seconds(1, -5)
    assert curve.seconds(130) == pytest.approx(2 * curve.seconds(65))
    for n, m in ((0, 1), (66, 1), (1, 0), (1, 66)):
        with pytest.raises(ArgumentError, match="from 1 to 65"):
            curve.doubt(n, m)
    curve.restore(CurvePoints([]))
    assert curve.next_probe(65) == 1


def test_wider_decodes_are_cheaper_only_with_clear_evidence() -> None:
    """On a processor with a slow kernel for single rows; noise is not enough."""
    rng = np.random.default_rng(0)
    slow, noisy = CostCurve(), CostCurve()
    for _ in range(30):
        for n, seconds in ((1, 0.033), (2, 0.022), (4, 0.035)):
            slow.observe(n, 0, seconds * math.exp(0.05 * rng.standard_normal()))
        for n in (1, 2, 4, 8):
            noisy.observe(n, 0, 0.03 * math.exp(0.05 * rng.standard_normal()))
    assert slow.seconds(2) < 0.8 * slow.seconds(1)
    assert slow.seconds(4) >= slow.seconds(1)
    once = learned("flat", [1])
    once.observe(2, 0, 0.9 * float(CURVES["flat"][2]))
    for curve in (noisy, once):
        assert all(curve.seconds(n) >= curve.seconds(1) for n in range(2, 66))
