"""The load of a session."""

from __future__ import annotations

from dataclasses import dataclass

HALF_LIFE = 10.0
"""Seconds of work after which a measurement has half its weight."""


@dataclass(frozen=True)
class QueueLoad:
    """The load of a session's worker thread.

    Attributes:
        n_waiting: Requests that have not begun.
        n_running: Requests that have begun and not ended.
        slots: The slots of the running requests.
        generated_tokens: Tokens generated since the session was opened.
        tokens_per_second: Recent speed of all requests together while the thread worked. The last
            10 s of work have half the weight of this mean.
    """

    n_waiting: int
    n_running: int
    slots: frozenset[int]
    generated_tokens: int
    tokens_per_second: float


class ThroughputMeter:
    """Tokens per second of work. Recent work counts more; idle time does not count."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        """Add a measurement: `tokens` tokens took `seconds` seconds."""
        decay = 0.5 ** (seconds / HALF_LIFE)
        self._tokens = self._tokens * decay + tokens
        self._seconds = self._seconds * decay + seconds

    @property
    def tokens_per_second(self) -> float:
        """Rate in tokens per second; 0 before the first measurement."""
        return self._tokens / self._seconds if self._seconds > 0 else 0.0
