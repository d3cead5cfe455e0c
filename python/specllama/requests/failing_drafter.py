"""A warning of a drafter that fails in every round. Without it only statistics would say so."""

from __future__ import annotations

import logging

from specllama._core import Stats

_LOG = logging.getLogger(__name__)

_UNASKED = 2
"""Rounds in which no drafter is asked: that of the prompt, and one with a single token to come."""

_last_error = ""


def warn_of_failing_drafter(stats: Stats) -> None:
    """Log that a drafter failed in every round of a generation that has ended; an error that was
    the last one logged is not logged again."""
    global _last_error
    error = stats.last_drafter_error
    if stats.drafted or not 0 < stats.drafter_errors >= stats.rounds - _UNASKED:
        return
    if error != _last_error:
        _last_error = error
        _LOG.warning("The drafter failed in every round, so nothing was drafted: %s", error)
