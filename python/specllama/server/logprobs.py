"""What the shapes of log-probabilities have in common."""

from __future__ import annotations

MOST_LOGPROBS = 20
"""How many of the likeliest tokens may be asked for."""

_IMPOSSIBLE = -9999.0


def finite(logprob: float) -> float:
    """Return a log-probability that JSON can hold; as in the OpenAI API, -9999 is none at all."""
    return max(logprob, _IMPOSSIBLE)
