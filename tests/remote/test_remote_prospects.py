"""What lockstep and ahead promise, by formula, and which of them is taken."""

from __future__ import annotations

import pytest
from specllama.remote.prospects import Prospects, Share

PLAIN = 0.05


def seconds(n: int) -> float:
    """A decode that costs a tenth more with each further token."""
    return PLAIN * (0.9 + 0.1 * n)


def prospects(
    *, drafts_here: bool = True, drafts_there: bool = True, alike: bool = False
) -> Prospects:
    return Prospects(seconds, 16, drafts_here=drafts_here, drafts_there=drafts_there, alike=alike)


def best(right: float, trip: float, step: float, most: int = 16) -> float:
    """The formula, written out."""
    return max(
        sum(right**i for i in range(g + 1)) / (trip + g * step + seconds(1 + g))
        for g in range(most + 1)
    )


def test_the_formula() -> None:
    one = prospects()
    for _ in range(100):
        one.drafted(8, 3, 4)  # three of four tokens were foreseen
        one.heard(4, 1, 2)
    for trip, step in ((0.0, 0.0), (0.04, 0.0), (0.2, 0.01)):
        assert one.lockstep(trip, step) == pytest.approx(best(one.here.value, trip, step))
    assert one.ahead() == pytest.approx(best(one.there.value, 0, 0))
    assert one.here.value == pytest.approx(0.75, abs=0.03)
    assert one.there.value == pytest.approx(0.5, abs=0.03)


def test_without_drafts_anywhere_only_the_way_counts() -> None:
    one = prospects(drafts_here=False, drafts_there=False)
    assert one.ahead() == 1 / PLAIN
    assert one.lockstep(0.05, 0) == 1 / (2 * PLAIN)
    assert one.mode(0.0, 0) == one.mode(0.05 * PLAIN, 0) == "lockstep"
    assert one.mode(0.06 * PLAIN, 0) == "ahead"


def test_who_does_not_draft_pays_the_way_for_every_token() -> None:
    one = prospects(drafts_here=False)
    one.heard(8, 8, 9)
    assert one.lockstep(0.05, 0) == 1 / (2 * PLAIN)
    assert one.mode(0, 0) == "ahead"


def test_what_was_not_seen_is_as_the_other() -> None:
    one = prospects()
    one.drafted(8, 8, 9)
    assert one.ahead() == one.lockstep(0, 0)
    other = prospects()
    other.heard(8, 8, 9)
    assert other.ahead() == other.lockstep(0, 0) == one.ahead()


def test_a_server_without_drafters_is_believed_plain_until_it_was_heard() -> None:
    one = prospects(drafts_there=False)
    for _ in range(20):
        one.drafted(8, 8, 9)
    assert one.ahead() == 1 / PLAIN
    assert one.mode(2 * PLAIN, 0) == "lockstep"  # drafts are good: the way is worth it
    one.heard(8, 8, 9)
    assert one.ahead() > 1 / PLAIN


def test_drafters_alike_share_what_is_seen() -> None:
    one = prospects(alike=True)
    one.heard(4, 0, 1)
    assert one.here.value == one.there.value < 0.5
    assert one.mode(0.5 * PLAIN, 0) == "ahead"
    assert one.mode(0.01 * PLAIN, 0) == "lockstep"


def test_the_mode_changes_with_what_is_seen() -> None:
    """Better drafts here than there are worth a trip; when they get worse they are not."""
    one = prospects()
    for _ in range(50):
        one.drafted(8, 8, 9)
        one.heard(0, 0, 1)
    assert one.mode(PLAIN, 0) == "lockstep"
    for _ in range(300):
        one.drafted(8, 0, 1)
    assert one.mode(PLAIN, 0) == "ahead"


def test_drafting_takes_time_too() -> None:
    one = prospects()
    for _ in range(50):
        one.drafted(8, 8, 9)
        one.heard(4, 1, 2)
    assert one.mode(PLAIN, 0.01 * PLAIN) == "lockstep"
    assert one.mode(PLAIN, PLAIN) == "ahead"


def test_a_share_forgets() -> None:
    share = Share()
    assert (share.seen, share.value) == (False, 0.5)
    share.observe(1000, 1000)  # longer than it remembers
    assert share.value > 0.98
    for _ in range(1000):
        share.observe(0, 1)
    assert share.value < 0.1
