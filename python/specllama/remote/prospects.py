"""What each way of getting on promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

_KEPT = 256.0
"""Tokens that a share remembers, about."""
_PRIOR = 0.5
_PRIOR_COUNTS = 16.0
"""What is believed of drafts that were never seen, and how many tokens that counts for."""
_TIE = 0.95
"""Of what ahead promises, lockstep has to promise so much: a target that waits between rounds has
time for others, and drafts made here are used to the full."""


class Share:
    """The part of a text that drafts foresee, from what was seen last."""

    def __init__(self) -> None:
        self._n_right = 0.0
        self._n_heard = 0.0

    def observe(self, n_right: int, n_heard: int) -> None:
        """See that of so many tokens so many were foreseen, those before each having been."""
        kept = max(1 - n_heard / _KEPT, 0.0)
        self._n_right = self._n_right * kept + n_right
        self._n_heard = self._n_heard * kept + n_heard

    @property
    def seen(self) -> bool:
        """Whether anything was."""
        return self._n_heard > 0

    @property
    def value(self) -> float:
        """From 0 to 1."""
        n_right = self._n_right + _PRIOR * _PRIOR_COUNTS
        return n_right / (self._n_heard + _PRIOR_COUNTS)


class Prospects:
    """Weighs lockstep and ahead by tokens a second, with E(g) = 1 + a + ... + a^g tokens of a round
    that verifies g drafted ones, of which a are right, each at the best g:

        lockstep    E(g) / (trip + g d + v(1 + g))    a: of what is drafted here
        ahead       E(g) / v(1 + g)                   a: of what the server has used, by itself

    Whichever of the two was not seen yet is believed to be as the other; where nobody drafts, a is
    0.

    Args:
        seconds: v(n), what a decode of n tokens takes there.
        most: Tokens of the longest draft.
        drafts_here: Somebody drafts here.
        drafts_there: The server has drafters of its own.
        alike: They draft as is done here, so that what is seen of one holds for both.
    """

    def __init__(
        self,
        seconds: Callable[[int], float],
        most: int,
        *,
        drafts_here: bool,
        drafts_there: bool,
        alike: bool,
    ) -> None:
        self._seconds = seconds
        self._most = most
        self._drafts_here = drafts_here
        self._drafts_there = drafts_there
        self.here = Share()
        self.there = self.here if alike and drafts_there else Share()

    def drafted(self, n_drafted: int, n_right: int, n_came: int) -> None:
        """See that of a draft made here so many tokens were right, of so many that came."""
        _see(self.here, n_drafted, n_right, min(n_right + 1, n_came))

    def heard(self, n_drafted: int, n_accepted: int, n_came: int) -> None:
        """See what rounds gave that the server made by itself."""
        _see(self.there, n_drafted, n_accepted, n_came)

    def lockstep(self, trip: float, step: float) -> float:
        """Tokens a second. step: what drafting a token takes."""
        right = self.here if self.here.seen else self.there
        return self._best(right.value if self._drafts_here else 0.0, trip, step)

    def ahead(self) -> float:
        """Tokens a second."""
        right = self.there if self.there.seen else self.here
        drafts = self._drafts_there or self.there.seen
        return self._best(right.value if drafts else 0.0, 0, 0)

    def mode(self, trip: float, step: float) -> Literal["lockstep", "ahead"]:
        """The way to go."""
        return "lockstep" if self.lockstep(trip, step) >= _TIE * self.ahead() else "ahead"

    def _best(self, right: float, trip: float, step: float) -> float:
        best = n_expected = 0.0
        reached = 1.0
        for g in range(self._most + 1):
            n_expected += reached
            reached *= right
            best = max(best, n_expected / (trip + g * step + self._seconds(1 + g)))
        return best


def _see(share: Share, n_drafted: int, n_right: int, n_heard: int) -> None:
    # A draft that was right to its end says nothing of what follows; none foresees nothing.
    share.observe(n_right, n_right if 0 < n_drafted == n_right else n_heard)
