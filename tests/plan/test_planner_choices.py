"""The planner's choices, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulation import (
    MAX_DRAFT,
    calibrated,
    curves,
)
from specllama._core import Source
from specllama._core.plan import Choice, CurvePoints, Evidence, PlannedRound, Planner, TextRegime
from specllama.simulate import calibrated_planner, curve_of

CURVES = curves()


def planner_for(curve: str) -> Planner:
    return calibrated(CURVES[curve])


def turn_of(
    planner: Planner, regime: TextRegime, drafts: list[list[Evidence]], n_tokens: int = 0, **at: Any
) -> PlannedRound:
    """Return a planned round with its choice."""
    planned = PlannedRound(regime, n_tokens, **at)
    for draft in drafts:
        planned.add(draft)
    planner.choose([planned])
    return planned


def choose(
    planner: Planner, regime: TextRegime, drafts: list[list[Evidence]], n_tokens: int = 0, **at: Any
) -> Choice:
    return turn_of(planner, regime, drafts, n_tokens, **at).choice


def asked(planner: Planner, draft: list[Evidence], copies: list[Evidence] | None = None) -> bool:
    planned = turn_of(planner, planner.begin(), [copies or []])
    return planner.should_continue(planned, draft, 0.005 * len(draft))


def test_a_draft_model_stops_when_no_continuation_can_pay() -> None:
    sure, unsure = Evidence(Source.model, 0, 0.99), Evidence(Source.model, 0, 0.01)
    planner = planner_for("bf16")
    planner.draft_cost.observe(1, 0, 0.005)
    assert asked(planner, [])
    assert asked(planner, [sure] * 3)
    assert not asked(planner, [unsure] * 3)
    assert not asked(planner, [sure] * MAX_DRAFT)


def test_a_draft_model_is_not_used_if_a_copy_is_better() -> None:
    planner = planner_for("bf16")
    planner.draft_cost.observe(1, 0, 0.03)
    copy = [Evidence(Source.match, 40 + i) for i in range(MAX_DRAFT)]
    assert choose(planner, planner.begin(), [copy]).n_draft > 8
    assert not asked(planner, [], copy)


PERFECT = [Evidence(Source.match, 100)] * MAX_DRAFT


def learn(planner: Planner, regime: TextRegime, draft: list[Evidence], rate: float, n: int) -> None:
    rng = np.random.default_rng(9)
    for i in range(n):
        judge(planner, regime, i, draft[:1], int(rng.random() < rate), 1)


def judge(
    planner: Planner, regime: TextRegime, i: int, draft: list[Evidence], n_right: int, n_judged: int
) -> None:
    """Report a draft that was not verified."""
    planned = PlannedRound(regime, i)
    planned.add(draft)
    planned.on_result(0, [n_right], n_judged)
    planner.learn(planned)


def verify(planner: Planner, regime: TextRegime, n_draft: int, n_accepted: int) -> None:
    """Verify a draft in every case."""
    planned = PlannedRound(regime, 0)
    planned.add(PERFECT[:n_draft], drawn=True, required=True)
    planner.choose([planned])
    assert planned.choice.n_draft == n_draft
    planned.on_result(n_accepted, [0], 0)
    planner.learn(planned)


@pytest.mark.parametrize("n_tokens", [0, 1200])
def test_a_width_beyond_the_budget_does_not_prevent_a_shorter_draft(n_tokens: int) -> None:
    """The costs are those of 4-bit weights with one thread. The widest decode has the cheapest
    tokens but exceeds the budget; also far into the context."""
    widths = {1: 1, 2: 2, 4: 3.3, 8: 6.1, 12: 7.5, 16: 6.5, 17: 8.1, 32: 11.2, 64: 13.3, 65: 18}
    planner = Planner()
    seconds = [0.048 * widths.get(n, 0) for n in range(1, 66)]
    planner.cost.restore(
        CurvePoints(seconds=seconds, context_base=5.7e-6, context_per_token=7.6e-6)
    )
    copy = [Evidence(Source.match, min(20 + i, 64)) for i in range(MAX_DRAFT)]
    regime = planner.begin()
    for i in range(80):  # plain rounds confirm the copy, so its confidence grows
        judge(planner, regime, n_tokens + i, copy, 1, 1)
        for overhead in (0.0, 0.04):
            chosen = choose(planner, regime, [copy], n_tokens + 1 + i, overhead=overhead)
            assert chosen.n_draft >= 15 or i == 0


def test_a_draft_model_does_not_draft_towards_a_width_beyond_the_budget() -> None:
    sure = [Evidence(Source.model, 0, 0.99)] * 8
    planner = calibrated_planner(curve_of({1: 1, 2: 4, 9: 4, 10: 14, MAX_DRAFT + 1: 14}))
    planner.draft_cost.observe(1, 0, 0.001 * planner.cost.seconds(1, 0))
    learn(planner, planner.begin(), sure, 1.0, 400)
    for _ in range(1000):  # plain decodes give a budget for a try
        planner.observe_decode(1, 0, planner.cost.seconds(1, 0))
    assert planner.should_continue(PlannedRound(planner.begin(), 0), sure[:6], 0)
    assert not planner.should_continue(PlannedRound(planner.begin(), 0), sure, 0)


def test_the_better_draft_is_chosen() -> None:
    planner = planner_for("bf16")
    regime = planner.begin()
    poor = [Evidence(Source.ngram, 2, 0.2)] * 8
    choice = choose(planner, regime, [poor, PERFECT, []])
    assert choice.candidate == 1
    assert choice.tokens > 5
    assert choice.time_saved > 0
    assert choose(planner, regime, [PERFECT, poor]).candidate == 0
    assert choose(planner, regime, []).candidate == -1
    assert choose(planner, regime, [[]]).n_draft == 0
    planned = PlannedRound(regime, 0)
    planned.add([], drawn=True)
    planner.choose([planned])
    assert planned.choice.n_draft == 0


@pytest.mark.parametrize("most", [-1, 0, 1, 3, 64, 1000])
def test_the_maximum_draft_length_is_respected(most: int) -> None:
    planner = planner_for("flat")
    planned = turn_of(planner, planner.begin(), [PERFECT * 2], max_draft=most)
    choice = planned.choice
    assert choice.n_draft <= min(max(most, 0), MAX_DRAFT)
    assert choice.n_draft >= min(max(most, 0), MAX_DRAFT - 4)
    if most <= 0:
        assert not planner.should_continue(planned, [])


def test_pending_tokens_shift_the_cost() -> None:
    """The first stair has 8 rows; 5 pending tokens leave 3 for the draft."""
    planner = planner_for("staircase")
    draft = [Evidence(Source.ngram, 4, 1.0)] * 20
    regime = planner.begin()
    learn(planner, regime, draft, 0.7, 300)
    assert choose(planner, regime, [draft], 300).n_draft == 7
    assert choose(planner, regime, [draft], 300, n_pending=5).n_draft == 3
    # Beyond 65 rows, each costs the same; the draft's confidence decides its length.
    assert 0 < choose(planner, regime, [PERFECT], 300, n_pending=65).n_draft < len(PERFECT)


def test_overhead_of_a_round_makes_drafts_longer() -> None:
    """A network round trip is paid once per round."""
    planner = planner_for("linear")
    draft = [Evidence(Source.ngram, 4, 1.0)] * MAX_DRAFT
    regime = planner.begin()
    learn(planner, regime, draft, 0.8, 300)
    near = choose(planner, regime, [draft], 300).n_draft
    far = choose(planner, regime, [draft], 300, overhead=0.5).n_draft
    assert far > near + 2


def test_a_request_that_lost_time_drafts_less() -> None:
    """Until the lost time is made up, only drafts with a clear gain are made."""
    planner = planner_for("linear")
    regime = planner.begin()
    draft = [Evidence(Source.ngram, 4, 0.7)] * MAX_DRAFT
    before = choose(planner, regime, [draft])
    assert before.n_draft > 0
    for _ in range(30):
        verify(planner, regime, 8, 0)
    during = choose(planner, regime, [draft])
    assert during.n_draft < before.n_draft
    assert during.time_saved < before.time_saved
    # The next request begins with that regret.
    assert choose(planner, planner.begin(), [draft]).time_saved < before.time_saved
    for _ in range(30):
        verify(planner, regime, 8, 8)
    after = choose(planner, regime, [draft])
    assert (after.n_draft, after.time_saved) == (before.n_draft, before.time_saved)


def test_certain_drafts_are_kept_after_losses() -> None:
    """Sixteen tokens cost eight here; a copy of half the value would never be drafted again."""
    planner = planner_for("q4_0")
    copy = [Evidence(Source.match, 60 + i) for i in range(MAX_DRAFT)]
    learn(planner, planner.begin(), copy, 1.0, 3000)
    regime = planner.begin()
    doubtful = [Evidence(Source.match, 5 + i) for i in range(MAX_DRAFT)]
    before = choose(planner, regime, [copy])
    for _ in range(2):
        planned = PlannedRound(regime, 0)
        planned.add(copy[:12], drawn=True, required=True)
        planner.choose([planned])
        planned.on_result(0, [0], 0)
        planner.learn(planned)
    after = choose(planner, regime, [copy])
    assert 12 < after.n_draft <= before.n_draft
    assert 0 < after.time_saved < before.time_saved
    assert choose(planner, regime, [doubtful]).time_saved < after.time_saved


def test_losses_from_copies_do_not_shorten_grammar_drafts() -> None:
    planner = planner_for("q4_k_m")
    regime = planner.begin()
    copy = [Evidence(Source.match, 20 + i) for i in range(MAX_DRAFT)]
    forced = [Evidence(Source.grammar, 9 - i) for i in range(9)]
    before = choose(planner, regime, [forced])
    assert before.n_draft > 0
    for _ in range(12):
        planned = PlannedRound(regime, 0)
        planned.add(copy, required=True)
        planner.choose([planned])
        planned.on_result(0, [0])
        planner.learn(planned)
    assert choose(planner, regime, [copy]).n_draft == 0
    assert choose(planner, regime, [forced]).n_draft == before.n_draft
    later = planner.begin()
    assert choose(planner, later, [copy]).n_draft == 0
    assert choose(planner, later, [forced]).n_draft == before.n_draft


def test_longer_matches_get_longer_drafts() -> None:
    planner = planner_for("bf16")
    lengths = []
    for m in (1, 4, 16, 64):
        copy = [Evidence(Source.match, m + i) for i in range(MAX_DRAFT)]
        lengths.append(choose(planner, planner.begin(), [copy]).n_draft)
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0] + 4


def test_the_token_that_broke_off_a_copy_starts_with_low_confidence() -> None:
    planner = planner_for("bf16")
    copy = [Evidence(Source.match, 8 + i) for i in range(MAX_DRAFT)]
    doubtful = [Evidence(Source.match, 8, confidence=0), *copy[1:]]

    def n_draft(draft: list[Evidence]) -> int:
        return choose(planner, planner.begin(), [draft]).n_draft

    assert n_draft(doubtful) < n_draft(copy)
    # It is trusted if such tokens turn out right, as in a text copied again, and not otherwise.
    learn(planner, planner.begin(), doubtful, 1.0, 400)
    assert n_draft(doubtful) >= n_draft(copy)
    learn(planner, planner.begin(), doubtful, 0.0, 400)
    assert n_draft(doubtful) == 0


def test_a_draft_costs_at_most_its_budget_and_the_time_saved() -> None:
    for stair, dares in ((7.0, True), (11.0, False)):  # the cost of every draft, however long
        planner = calibrated_planner(curve_of({1: 1, 2: 1 + stair, MAX_DRAFT + 1: 1 + stair}))
        learn(planner, planner.begin(), PERFECT, 1.0, 400)
        regime = planner.begin()
        assert (choose(planner, regime, [PERFECT]).n_draft > 60) == dares
        extra = planner.cost.seconds(MAX_DRAFT + 1, 0) / planner.cost.seconds(1, 0) - 1
        verify(planner, regime, MAX_DRAFT, int(extra) + 1)
        assert (choose(planner, regime, [PERFECT]).n_draft > 60) == dares
        verify(planner, regime, MAX_DRAFT, int(extra) + 4)
        assert choose(planner, regime, [PERFECT]).n_draft > 60


def test_acceptance_is_learned_separately_for_each_temperature() -> None:
    planner = planner_for("bf16")
    copy = [Evidence(Source.match, 4 + i) for i in range(MAX_DRAFT)]
    before = choose(planner, planner.begin(0.0), [copy])
    learn(planner, planner.begin(1.5), copy, 0.0, 400)
    after = choose(planner, planner.begin(0.0), [copy])
    assert after.tokens == before.tokens
    assert choose(planner, planner.begin(1.5), [copy]).n_draft == 0


def test_the_planner_learns_nothing_from_tokens_after_a_rejected_one() -> None:
    """A draft whose first token is wrong says nothing about its other tokens."""
    planner = planner_for("bf16")
    first, second = Evidence(Source.ngram, 2, 1.0), Evidence(Source.ngram, 8, 1.0)
    regime = planner.begin()
    for i in range(200):
        judge(planner, regime, i, [first, second], 0, 1)
        judge(planner, regime, i, [second], 1, 1)
    fresh = planner.begin()
    assert choose(planner, fresh, [[first] * 8]).n_draft == 0
    assert choose(planner, fresh, [[second] * 8]).n_draft == 8


def test_impossible_evidence_gives_finite_choices() -> None:
    planner = planner_for("bf16")
    regime = planner.begin(float("nan"), -5)
    strange = [
        Evidence(source, length, confidence)
        for source in Source
        for length in (-(10**9), 0, 10**9)
        for confidence in (float("nan"), float("-inf"), float("inf"), -1.0, 2.0)
    ]
    for n_right, n_judged in ((0, 0), (100, 3), (3, 100), (-1, 1)):
        judge(planner, regime, 10, strange, n_right, n_judged)
    choice = choose(planner, regime, [strange], -3, n_pending=0)
    assert 0 <= choice.n_draft <= MAX_DRAFT
    assert np.isfinite([choice.tokens, choice.seconds, choice.time_saved]).all()
    planner.observe_decode(2, 0, float("nan"))
    assert np.isfinite(planner.cost.seconds(2))
