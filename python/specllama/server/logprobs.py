"""What the forms of log-probabilities in both APIs have in common."""

from __future__ import annotations

MOST_LOGPROBS = 20
"""Most of the likeliest tokens that may be asked for at a position."""

_IMPOSSIBLE = -9999.0


def finite(logprob: float) -> float:
    """Return a log-probability that JSON can hold: -9999 is probability 0, as in the OpenAI API."""
    return max(logprob, _IMPOSSIBLE)
