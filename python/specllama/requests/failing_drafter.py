"""A warning about a drafter that fails in every round; without it, only the statistics would show
this."""

from __future__ import annotations

import logging

from specllama._core import Stats

_LOG = logging.getLogger(__name__)

_UNASKED = 2
"""Rounds without a call of the drafter: that of the prompt, and one with a single token left."""

_last_error = ""


def warn_of_failing_drafter(stats: Stats) -> None:
    """Log a warning if the drafter failed in every round of a generation that has ended. The same
    error is not logged twice in a row."""
    global _last_error
    error = stats.last_drafter_error
    if stats.drafted or not 0 < stats.drafter_errors >= stats.rounds - _UNASKED:
        return
    if error != _last_error:
        _last_error = error
        _LOG.warning("The drafter failed in every round, so nothing was drafted: %s", error)
