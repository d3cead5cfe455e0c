"""Whether drafts that a server need not wait for bring anything."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specllama._core.plan import CostCurve

_TRIED = 16
"""Rounds by which a draft model is judged."""
_LEAST = 0.02
"""Part of those rounds' time that it has to save."""
_MOST_LOST = 0.05
"""Part of those rounds' time that decodes which take longer may cost before they are over; of more
while the model still takes in the text."""
_FIRST_SILENCE = 64
_LONGEST_SILENCE = 1024
"""Rounds without it before it is tried again: twice as many after each try in vain."""


@dataclass(frozen=True)
class Heard:
    """What a server tells of rounds it made by itself.

    Attributes:
        n_rounds: How many.
        n_drafted, n_accepted: Tokens that were verified in them, whoever drafted them, and the
            right ones.
        n_offered: Of these, those that were drafted here.
        n_used: Of those, the right ones.
        seconds: What the decodes took.
    """

    n_rounds: int
    n_drafted: int
    n_accepted: int
    n_offered: int
    n_used: int
    seconds: float


class Usefulness:
    """Decides whether a draft model is asked that drafts for a server which goes on by itself.

    A token of its that was right saves a plain decode, and costs what its place in a wider decode
    does. Against that stands what it costs the server's decodes where both models share a memory or
    processors: by how much longer they take than in rounds in which it was not asked. When it did
    not save enough in some rounds it is asked no more for a while; the while grows with every try
    in vain. A try begins with its first token; it may take in the text before for as long as that
    costs the server little.

    It reads no clock, and the same rounds give the same decisions. One serves a session.

    Args:
        cost: What decodes take there when nobody drafts here.
    """

    def __init__(self, cost: CostCurve) -> None:
        self._cost = cost
        self._silence = _FIRST_SILENCE
        self._n_silent = 0  # rounds still to go without it
        self._n_on_way = -1  # rounds that know nothing of its first offer; -1: there was none
        self._has_offered = False
        self._start()

    @property
    def wanted(self) -> bool:
        """Whether it is to be asked."""
        return self._n_silent == 0

    def offer(self) -> None:
        """It has drafted a token."""
        self._has_offered = True

    def hear(self, heard: Heard, n_context: int, trip: float) -> None:
        """Take in rounds that were made.

        Args:
            heard: What was told.
            n_context: Tokens of the text.
            trip: Seconds of the way there and back.
        """
        if heard.n_rounds < 1 or not 0 < heard.seconds < math.inf:
            return
        if self._n_silent > 0:
            if heard.n_rounds == 1:
                self._cost.observe(1 + heard.n_drafted, n_context, heard.seconds)
            self._n_silent = max(self._n_silent - heard.n_rounds, 0)
            return
        plain = self._seconds(0, n_context)
        if self._has_offered and self._n_on_way < 0:
            self._n_on_way = math.ceil(min(trip / plain, _LONGEST_SILENCE))
            self._start()
        if self._n_on_way > 0:
            self._n_on_way = max(self._n_on_way - heard.n_rounds, 0)
            return
        self._weigh(heard, n_context, plain)
        most = _TRIED if self._has_offered else _LONGEST_SILENCE
        too_dear = _MOST_LOST * max(self._n_tried, _TRIED) * plain
        if self._n_tried >= most or self._lost - max(self._saved, 0.0) > too_dear:
            self._judge(plain)

    def _start(self) -> None:
        self._n_tried = 0
        self._saved = self._lost = 0.0

    def _weigh(self, heard: Heard, n_context: int, plain: float) -> None:
        self._n_tried += heard.n_rounds
        own = (heard.n_drafted - heard.n_offered) / heard.n_rounds
        drafted = heard.n_drafted / heard.n_rounds
        usual = self._seconds(drafted, n_context)
        wider = usual - self._seconds(own, n_context)
        self._saved += heard.n_used * plain - heard.n_rounds * wider
        self._lost += heard.seconds - heard.n_rounds * usual

    def _judge(self, plain: float) -> None:
        enough = max(self._lost, 0.0) + _LEAST * self._n_tried * plain
        if self._saved > enough:
            self._silence = _FIRST_SILENCE
        else:
            self._n_silent = self._silence
            self._silence = min(2 * self._silence, _LONGEST_SILENCE)
            self._n_on_way = -1
            self._has_offered = False
        self._start()

    def _seconds(self, n_drafted: float, n_context: int) -> float:
        return self._cost.seconds(1 + round(n_drafted), n_context)
