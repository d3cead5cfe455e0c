"""When the planner uses a draft model, and what it learns from mixed drafts."""

from __future__ import annotations

import pytest
from folders import DATA
from specllama._core import Source
from specllama._core.plan import CurvePoints, Evidence, PlannedRound, Planner
from specllama.simulate import read_curves

FLAT = [1 + 0.01 * n for n in range(64)]
STEEP = [1 + 0.6 * n for n in range(64)]
CURVES = DATA / "curves.json"


def planner(seconds: list[float], step: float, row: float = 0.02) -> Planner:
    """Return a planner with known decode costs and a draft model's step cost; each further row
    costs `row` steps."""
    one = Planner()
    one.cost.restore(CurvePoints(seconds))
    for n in (1, 64):
        one.draft_cost.observe(n, 0, step * (1 + row * (n - 1)))
    return one


def copy(length: int, n: int = 8) -> list[Evidence]:
    return [Evidence(Source.match, length + i) for i in range(n)]


def chosen(one: Planner, draft: list[Evidence], n_tokens: int = 100) -> PlannedRound:
    planned = PlannedRound(one.begin(0.0, n_tokens), n_tokens)
    planned.add(draft)
    one.choose([planned])
    return planned


def learn_of_model(one: Planner, n_right: int) -> None:
    """Report the first n_right of four of its tokens as right, many times."""
    regime = one.begin(0.0, 0)
    draft = [Evidence(Source.model, 0, 0.9)] * 4
    for i in range(300):
        planned = PlannedRound(regime, 5 * i)
        planned.add(draft)
        one.choose([planned])
        planned.on_result(min(n_right, planned.choice.n_draft), [n_right], n_right + 1)
        one.learn(planned)


def test_the_draft_model_verifies_copies_if_rows_are_cheaper_than_steps() -> None:
    cheap = planner(FLAT, 0.02)
    assert cheap.n_to_check(chosen(cheap, copy(40), 2000)) == 8
    expensive = planner(FLAT, 0.02, row=2)
    planned = chosen(expensive, copy(40), 2000)
    assert planned.choice.n_draft == 8
    assert expensive.n_to_check(planned) == 0


def test_a_copy_is_verified_only_by_a_draft_model_that_has_read_the_text() -> None:
    one = planner(FLAT, 0.02)
    near = chosen(one, copy(40), 2000)
    near.n_to_check = near.choice.n_draft
    assert one.should_continue(near, [])
    far = PlannedRound(one.begin(0.0, 2000), 2000, n_unprocessed=1900)
    far.add(copy(40))
    one.choose([far])
    far.n_to_check = far.choice.n_draft
    assert not one.should_continue(far, [])


def test_verifying_copies_is_charged_to_the_draft_model() -> None:
    """Copies are right. A draft model that agrees costs its steps; one that does not loses them,
    too."""

    def n_checks(n_agreed: int) -> int:
        one = planner(FLAT, 0.1)
        regime = one.begin(0.0, 0)
        n = 0
        for i in range(400):
            planned = PlannedRound(regime, 9 * i)
            planned.add(copy(40))
            one.choose([planned])
            planned.n_to_check = planned.choice.n_draft
            checks = one.should_continue(planned, [])
            n += checks
            without_draft_model = planned.choice if checks else None
            planned = PlannedRound(
                regime, 9 * i, spent=0.25 * checks, without_draft_model=without_draft_model
            )
            planned.add(copy(40))
            n_own = min(n_agreed + 1, 8) if checks else 0
            planned.add([Evidence(Source.model, 0, 0.9)] * n_own, required=checks)
            one.choose([planned])
            n_draft = planned.choice.n_draft
            n_right = min(n_draft, n_agreed if checks else 8)
            planned.on_result(n_right, [min(8, n_right + 1), min(n_right, n_agreed)])
            one.learn(planned)
        return n

    assert 0 < n_checks(0) < n_checks(8) < 200


def test_tokens_of_the_draft_model_replace_the_chosen_copy() -> None:
    one = planner(FLAT, 0.02)
    for required in (False, True):
        planned = PlannedRound(one.begin(0.0, 100), 100)
        planned.add(copy(40))
        planned.add([Evidence(Source.model, 0, 0.3)] * 2, required=required)
        one.choose([planned])
        assert planned.choice.candidate == required


@pytest.mark.parametrize("n_rest", [0, 4])
def test_the_planner_learns_nothing_from_continuations_of_other_drafters(n_rest: int) -> None:
    one = planner(FLAT, 0.02)
    before = chosen(one, copy(20, 4), 1000).choice.tokens
    regime = one.begin(0.0, 0)
    for i in range(100):
        planned = PlannedRound(regime, 9 * i)
        planned.add([Evidence(Source.model, 0, 0.9)] * 4 + copy(20, 4), n_rest=n_rest)
        one.choose([planned])
        planned.on_result(4, [4], 5)
        one.learn(planned)
    after = chosen(one, copy(20, 4), 1000).choice.tokens
    assert (after == before) == (n_rest == 4)


def answer(
    one: Planner,
    n_requests: int,
    n_tokens: int,
    max_draft: int = 8,
    n_prompt: int = 400,
    max_tokens: int = 1000,
) -> tuple[list[float], list[float]]:
    """Return, for each request of n_prompt prompt tokens and at most max_tokens answer tokens, the
    seconds spent on a draft model that is always right, and the speed. A plain decode takes a
    second."""
    asking, speeds = [], []
    for _ in range(n_requests):
        regime = one.begin(0.0, n_prompt)
        seen, asked, seconds, i = 0, 0.0, 0.0, 0
        while i < n_tokens:
            at = n_prompt + i
            room = min(max_draft, n_tokens - 1 - i)
            planned = PlannedRound(
                regime, at, max_draft=room, n_unprocessed=at - 1 - seen, n_left=max_tokens - i
            )
            one.choose([planned])
            draft: list[Evidence] = []
            spent = 0.0
            while one.should_continue(planned, draft, spent):
                spent += one.draft_cost.seconds(at + len(draft) - seen, at)
                seen = at + len(draft)
                draft.append(Evidence(Source.model, 0, 0.9))
            without_draft_model = planned.choice if spent else None
            planned = PlannedRound(
                regime, at, max_draft=room, spent=spent, without_draft_model=without_draft_model
            )
            planned.add(draft)
            one.choose([planned])
            n_accepted = planned.choice.n_draft
            seconds += spent + one.cost.seconds(1 + n_accepted, at)
            planned.on_result(n_accepted, [min(len(draft), n_accepted + 1)])
            one.learn(planned)
            asked += spent
            i += n_accepted + 1
        asking.append(asked)
        speeds.append(n_tokens / seconds)
    return asking, speeds


def test_a_useless_draft_model_does_not_read_every_prompt() -> None:
    one = planner(FLAT, 0.4)
    a_prompt = one.draft_cost.seconds(251, 0)
    assert a_prompt > 4
    asking, _ = answer(one, 60, 3, n_prompt=250)
    assert sum(asking) == 0  # three tokens end too soon
    asking, _ = answer(one, 60, 10, n_prompt=250)
    assert asking[0] > a_prompt - 1  # ten tokens leave too few to pay
    assert sum(asking) < 10 * a_prompt
    assert sum(seconds > 0 for seconds in asking) < 10


def test_a_draft_model_does_not_read_the_prompt_of_a_short_answer() -> None:
    one = planner(FLAT, 0.4)
    asking, _ = answer(one, 60, 20, n_prompt=250, max_tokens=20)
    assert sum(asking) == 0
    asking, _ = answer(one, 1, 200, n_prompt=250, max_tokens=200)
    assert asking[0] > one.draft_cost.seconds(251, 0)


def test_a_draft_model_does_not_read_a_prompt_beyond_its_budget() -> None:
    one = planner([*read_curves(CURVES)["q4_k_m"]], 0.05)
    assert one.draft_cost.seconds(4001, 0) > 9
    asking, _ = answer(one, 3, 300, max_draft=20, n_prompt=4000)
    assert asking == [0, 0, 0]
    asking, _ = answer(one, 1, 300, max_draft=20, n_prompt=400)
    assert asking[0] > 0


def test_a_draft_model_reads_a_prompt_only_if_the_answer_does_not_copy() -> None:
    """It is not used if the first rounds copy."""

    def reads(n_copied: int) -> bool:
        one = planner(FLAT, 0.1)
        regime = one.begin(0.0, 400)
        at = 400
        for _ in range(6):
            planned = PlannedRound(regime, at, n_unprocessed=at, n_left=200)
            planned.add(copy(40, n_copied))
            one.choose([planned])
            if one.should_continue(planned, []):
                return True
            planned.on_result(planned.choice.n_draft, [n_copied])
            one.learn(planned)
            at += planned.choice.n_draft + 1
        return False

    assert reads(0)
    assert not reads(16)


def test_a_good_draft_model_is_used_for_every_prompt() -> None:
    asking, speeds = answer(planner(FLAT, 0.1), 20, 60)
    assert min(asking) > 0
    assert min(speeds) > 2


def test_empty_drafts_of_a_draft_model_count_as_wrong_ones() -> None:
    """Drafts are empty below draft_p_min, and while the draft model reads a prompt."""

    def n_asked(n_drafted: int) -> int:
        one = planner(STEEP, 0.1)
        regime = one.begin(0.0, 0)
        n = 0
        for i in range(2000):
            planned = PlannedRound(regime, i, n_unprocessed=1)
            one.choose([planned])
            asked = one.should_continue(planned, [])
            n += asked
            planned = PlannedRound(
                regime, i, spent=0.1 * asked, without_draft_model=planned.choice if asked else None
            )
            planned.add([Evidence(Source.model, 0, 0.9)] * (n_drafted if asked else 0))
            one.choose([planned])
            planned.on_result(0, [0], 1)
            one.learn(planned)
        return n

    assert n_asked(1) > 1
    assert n_asked(0) < 1.1 * n_asked(1)  # a verified token changes the estimate, too


@pytest.mark.parametrize("curve", ["q4_k_m", "q4_0", "metal_like"])
def test_a_draft_model_that_seems_useless_is_still_tried(curve: str) -> None:
    """With its initial estimate no draft pays; if its tokens are right, long drafts do."""
    stairs = [*read_curves(CURVES)[curve]]
    _, speeds = answer(planner(stairs, 0.05), 2, 120, max_draft=20)
    assert speeds[0] > 1
    assert speeds[1] > 1.5
