"""When a draft model is asked that drafts for a server which does not wait, by what that tells."""

from __future__ import annotations

from specllama._core.plan import CostCurve, CurvePoints
from specllama.remote.usefulness import Heard, Usefulness

PLAIN = 0.05


def v(n: int) -> float:
    return PLAIN * (0.8 + 0.2 * n)


def usefulness() -> Usefulness:
    cost = CostCurve()
    cost.restore(CurvePoints(seconds=[v(n) for n in range(1, 66)]))
    return Usefulness(cost)


def plain(slower: float = 1.0) -> Heard:
    """A round without drafts."""
    return Heard(1, 0, 0, 0, 0, slower * v(1))


def used(n: int, n_used: int, slower: float = 1.0) -> Heard:
    """A round that verified n tokens of a draft made here."""
    return Heard(1, n, n_used, n, n_used, slower * v(1 + n))


def wanted(
    one: Usefulness, rounds: list[Heard], trip: float = 0.0, offers: bool = True
) -> list[bool]:
    """Return for each round whether the draft model was asked before it."""
    asked = []
    for heard in rounds:
        asked.append(one.wanted)
        if one.wanted and offers:
            one.offer()
        one.hear(heard, 100, trip)
    return asked


def test_offers_that_are_used_are_made_on() -> None:
    assert all(wanted(usefulness(), [used(4, 3)] * 500))


def test_offers_that_nobody_uses_end_soon() -> None:
    """And the silence grows with each try in vain."""
    asked = wanted(usefulness(), [plain()] * 2500)
    assert asked[:81] == [True] * 16 + [False] * 64 + [True]
    lengths = [len(part) for part in "".join(" x"[one] for one in asked).split("x") if part]
    assert lengths[:5] == [64, 128, 256, 512, 1024]
    assert sum(asked) / len(asked) < 0.05


def test_offers_that_are_wrong_end() -> None:
    asked = wanted(usefulness(), [used(4, 0)] * 81)
    assert asked == [True] * 16 + [False] * 64 + [True]


def test_offers_that_slow_the_server_down_must_bring_more_than_that() -> None:
    """Where the two models share a memory."""
    assert all(wanted(usefulness(), [used(4, 3, 1.1)] * 100))
    asked = wanted(usefulness(), [used(1, 1, 1.8)] * 40)
    assert not asked[-1]
    assert all(wanted(usefulness(), [used(1, 1)] * 40))


def test_a_try_that_succeeds_ends_the_silence() -> None:
    one = usefulness()
    wanted(one, [plain()] * (16 + 64 + 16 + 128))
    assert one.wanted
    assert all(wanted(one, [used(4, 4)] * 160))
    asked = wanted(one, [plain()] * 81)
    assert asked == [True] * 16 + [False] * 64 + [True]  # from the shortest on again


def test_what_is_on_its_way_is_no_try() -> None:
    """Over a way of nearly ten decodes the first ten rounds could not know of a draft."""
    rounds = [plain()] * 10 + [used(4, 4)] * 16
    one = usefulness()
    assert all(wanted(one, rounds, trip=9.5 * PLAIN))
    assert one.wanted
    asked = wanted(usefulness(), [plain()] * 40, trip=9.5 * PLAIN)
    assert asked == [True] * 26 + [False] * 14


def test_taking_in_the_text_is_no_try_where_it_costs_the_server_nothing() -> None:
    one = usefulness()
    assert all(wanted(one, [plain()] * 500, offers=False))
    assert all(wanted(one, [used(4, 4)] * 100))
    asked = wanted(usefulness(), [plain()] * 1100, offers=False)
    assert asked == [True] * 1024 + [False] * 64 + [True] * 12


def test_taking_in_the_text_ends_where_it_costs_the_server_much() -> None:
    asked = wanted(usefulness(), [plain(1.3)] * 67, offers=False)
    assert asked == [True] * 3 + [False] * 64


def test_several_rounds_in_a_message() -> None:
    one = usefulness()
    one.offer()
    one.hear(Heard(16, 0, 0, 0, 0, 16 * v(1)), 100, 0)
    assert not one.wanted
    one.hear(Heard(64, 0, 0, 0, 0, 64 * v(1)), 100, 0)
    assert one.wanted


def test_what_a_decode_takes_is_learned_while_nobody_drafts() -> None:
    """A machine that has become slower for another reason is not laid to the drafts."""
    one = usefulness()
    wanted(one, [plain(2.0)] * (16 + 64))
    assert all(wanted(one, [used(4, 3, 2.0)] * 100))


def test_what_cannot_be_is_ignored() -> None:
    one = usefulness()
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        wanted(one, [Heard(1, 0, 0, 0, 0, seconds)] * 10)
    wanted(one, [Heard(0, 0, 0, 0, 0, 1.0)] * 100)
    assert one.wanted
