"""How busy a session is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QueueLoad:
    """How busy a session's thread is.

    Attributes:
        n_waiting: Requests that have not begun.
        n_running: Requests that have begun and not ended.
        generated_tokens: Tokens generated since the session was opened.
        tokens_per_second: The recent speed of all requests together while the thread worked; the
            last 10 seconds make up half of this mean.
    """

    n_waiting: int
    n_running: int
    generated_tokens: int
    tokens_per_second: float
