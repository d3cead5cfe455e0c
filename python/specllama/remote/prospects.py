"""Estimates the speed of each mode, lockstep and ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

_KEPT = 256.0
"""Tokens that a share remembers, roughly."""
_PRIOR = 0.5
_PRIOR_COUNTS = 16.0
"""The share assumed before anything was observed, and the number of tokens it counts for."""
_TIE = 0.95
"""Lockstep is chosen if it promises at least this fraction of ahead's speed: a target that waits
between rounds has time for other requests, and drafts made here are used to the full."""


class Share:
    """The fraction of a text's tokens that drafts foresee, estimated from recent ones."""

    def __init__(self) -> None:
        self._n_right = 0.0
        self._n_heard = 0.0

    def observe(self, n_right: int, n_heard: int) -> None:
        """Observe n_heard tokens, n_right of them foreseen. Each followed foreseen ones only."""
        kept = max(1 - n_heard / _KEPT, 0.0)
        self._n_right = self._n_right * kept + n_right
        self._n_heard = self._n_heard * kept + n_heard

    @property
    def seen(self) -> bool:
        """Whether anything was observed."""
        return self._n_heard > 0

    @property
    def value(self) -> float:
        """The estimate, from 0 to 1."""
        n_right = self._n_right + _PRIOR * _PRIOR_COUNTS
        return n_right / (self._n_heard + _PRIOR_COUNTS)


class Prospects:
    """Compares lockstep and ahead by tokens per second, each with its best draft length g. A round
    that verifies g draft tokens, each right with probability a, gives E(g) = 1 + a + ... + a^g:

        lockstep    E(g) / (trip + g d + v(1 + g))    a: share of the drafts made here
        ahead       E(g) / v(1 + g)                   a: share of the drafts the server used

    A share that was not observed yet is taken to equal the other; where nobody drafts, a is 0.

    Args:
        seconds: v(n), the seconds of a decode of n tokens by the target.
        most: Tokens of the longest draft.
        drafts_here: Whether there is a drafter here.
        drafts_there: Whether the server has drafters of its own.
        alike: Whether both sides draft in the same way, so that one share serves for both.
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
        """Observe a draft made here: n_right tokens were right, and the round gave n_came."""
        _see(self.here, n_drafted, n_right, min(n_right + 1, n_came))

    def heard(self, n_drafted: int, n_accepted: int, n_came: int) -> None:
        """Observe rounds that the server made without waiting; they gave n_came tokens."""
        _see(self.there, n_drafted, n_accepted, n_came)

    def lockstep(self, trip: float, step: float) -> float:
        """Expected tokens per second in lockstep. step: d, the seconds of drafting a token."""
        right = self.here if self.here.seen else self.there
        return self._best(right.value if self._drafts_here else 0.0, trip, step)

    def ahead(self) -> float:
        """Expected tokens per second ahead."""
        right = self.there if self.there.seen else self.here
        drafts = self._drafts_there or self.there.seen
        return self._best(right.value if drafts else 0.0, 0, 0)

    def mode(self, trip: float, step: float) -> Literal["lockstep", "ahead"]:
        """The mode to use for the next generation."""
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
    # A draft that was right to its end tells nothing of the next token. No draft: none foreseen.
    share.observe(n_right, n_right if 0 < n_drafted == n_right else n_heard)
