"""Sequences that share a decode: what the planner chooses for each, and what each is charged."""

from __future__ import annotations

import pytest
from simulation import MAX_DRAFT, calibrated, curves
from specllama._core import Source
from specllama._core.plan import Evidence, PlannedRound, Planner, TextRegime

CURVES = curves()
SURE = [Evidence(Source.match, 100)] * 8
VAGUE = [Evidence(Source.ngram, 2, 0.3)] * 8


def turns_of(
    planner: Planner, drafts: list[list[Evidence]], n_pending: int = 1
) -> list[PlannedRound]:
    planned_rounds = []
    for place, draft in enumerate(drafts):
        planned = PlannedRound(planner.begin(), 0, n_pending=n_pending, stream=place)
        planned.add(draft)
        planned_rounds.append(planned)
    planner.choose(planned_rounds)
    return planned_rounds


def taught(planner: Planner, curve: str) -> Planner:
    for n in (1, 2, 4, 8, 16, 32, 64):
        planner.cost.observe(n, 0, float(CURVES[curve][n]))
    return planner


def lengths(planned_rounds: list[PlannedRound]) -> list[int]:
    return [planned.choice.n_draft for planned in planned_rounds]


def test_all_sequences_draft_if_width_is_free() -> None:
    assert lengths(turns_of(calibrated(CURVES["flat"]), [SURE] * 4)) == [8] * 4


def test_no_sequence_drafts_if_every_row_costs_a_decode() -> None:
    assert lengths(turns_of(calibrated(CURVES["steep"]), [VAGUE] * 8)) == [0] * 8


def test_drafts_become_shorter_next_to_drafts_of_other_sequences() -> None:
    planner = calibrated(CURVES["linear"])
    (alone,) = lengths(turns_of(planner, [SURE]))
    assert alone > max(lengths(turns_of(planner, [SURE] * 4)))


def test_the_more_confident_draft_is_longer() -> None:
    sure, vague = lengths(turns_of(calibrated(CURVES["bf16"]), [SURE, VAGUE]))
    assert sure > vague


def test_a_required_draft_is_verified_whole() -> None:
    """A drawn draft must be verified, or the distribution of the text is wrong."""
    planner = calibrated(CURVES["steep"])
    one, other = PlannedRound(planner.begin(), 0), PlannedRound(planner.begin(), 0)
    one.add(SURE)
    one.add(VAGUE, drawn=True, required=True)
    other.add(VAGUE)
    planner.choose([one, other])
    assert (one.choice.candidate, one.choice.n_draft) == (1, len(VAGUE))
    assert other.choice.n_draft == 0


def test_a_drawn_draft_is_verified_whole_or_not_at_all() -> None:
    for curve, n_draft in (("flat", len(SURE)), ("steep", 0)):
        planner = calibrated(CURVES[curve])
        planned = PlannedRound(planner.begin(), 0)
        planned.add(SURE, drawn=True)
        planner.choose([planned])
        assert planned.choice.n_draft == n_draft


@pytest.mark.parametrize("curve", CURVES)
def test_sequences_with_separate_memories_draft_equally_or_not_at_all(curve: str) -> None:
    planner = Planner(per_sequence_streams=True)
    for _ in range(5):
        taught(planner, curve)
    assert len({*lengths(turns_of(planner, [SURE, SURE[:3], VAGUE, SURE])), 0}) <= 2


def test_a_sequence_without_drafts_is_not_charged_for_others() -> None:
    """A sequence's wrong drafts are charged to that sequence only."""
    planner = calibrated(CURVES["linear"])
    silent, wrong = planner.begin(), planner.begin()
    draft = [Evidence(Source.ngram, 4, 0.7)] * MAX_DRAFT

    def saved(regime: TextRegime) -> float:
        planned = PlannedRound(regime, 0)
        planned.add(draft)
        planner.choose([planned])
        return planned.choice.time_saved

    before = saved(silent), saved(wrong)
    for _ in range(30):
        planned_rounds = [PlannedRound(silent, 0), PlannedRound(wrong, 0)]
        planned_rounds[1].add(SURE, drawn=True, required=True)
        planner.choose(planned_rounds)
        for planned, n_right in zip(planned_rounds, ([], [0]), strict=True):
            planned.on_result(0, n_right, 0)
            planner.learn(planned)
    assert saved(silent) == before[0]
    assert saved(wrong) < before[1]


def test_drafts_of_many_sequences_stay_within_most_rows() -> None:
    """The limit does not apply to a single sequence."""
    planner = taught(Planner(most_rows=7), "flat")
    assert sum(lengths(turns_of(planner, [SURE] * 4))) == 7 - 4
    assert lengths(turns_of(planner, [SURE])) == [len(SURE)]
    assert lengths(turns_of(planner, [SURE] * 30)) == [0] * 30
