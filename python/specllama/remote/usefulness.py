"""Decides whether drafts are useful to a server that does not wait for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specllama._core.plan import CostCurve

_TRIED = 16
"""Rounds after which a try of the draft model is judged."""
_LEAST = 0.02
"""Least fraction of those rounds' time that the draft model has to save."""
_MOST_LOST = 0.05
"""Fraction of those rounds' time by which decodes may become slower before a try ends early. While
the draft model takes in the text there may be more rounds; then it is a fraction of all of them."""
_FIRST_SILENCE = 64
_LONGEST_SILENCE = 1024
"""Fewest and most rounds without the draft model between tries; doubled after each useless try."""


@dataclass(frozen=True)
class Heard:
    """A server's report of rounds that it made without waiting for drafts.

    Attributes:
        n_rounds: Number of rounds.
        n_drafted, n_accepted: Draft tokens that were verified, whoever drafted them, and those of
            them that were accepted.
        n_offered, n_used: The parts of n_drafted and n_accepted that were drafted here.
        seconds: Seconds of the decodes.
    """

    n_rounds: int
    n_drafted: int
    n_accepted: int
    n_offered: int
    n_used: int
    seconds: float


class Usefulness:
    """Decides whether to ask a draft model that drafts for a server which does not wait for it.

    An accepted token of the draft model saves a plain decode; every token costs its row in a wider
    decode. If both models share memory or processors, the draft model also slows down the server's
    decodes: by the difference to rounds in which it was not asked. If it did not save enough in
    _TRIED rounds, it is not asked for a while, which grows with every useless try. A try begins
    with the model's first token; before that it may take in the text, as long as this costs the
    server little.

    No clock is read here: the same rounds give the same decisions. One object serves a session.

    Args:
        cost: Cost of the server's decodes while nobody drafts here.
    """

    def __init__(self, cost: CostCurve) -> None:
        self._cost = cost
        self._silence = _FIRST_SILENCE
        self._n_silent = 0  # rounds still to pass without asking it
        self._n_on_way = -1  # coming rounds that began before its first offer; -1: none yet
        self._has_offered = False
        self._start()

    @property
    def wanted(self) -> bool:
        """Whether the draft model is to be asked."""
        return self._n_silent == 0

    def offer(self) -> None:
        """Note that the draft model has drafted a token."""
        self._has_offered = True

    def hear(self, heard: Heard, n_context: int, trip: float) -> None:
        """Take in a report of rounds.

        Args:
            heard: The report.
            n_context: Tokens of the text.
            trip: Seconds of the round trip to the server.
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
