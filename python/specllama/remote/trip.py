"""The time of a round trip to a server."""

from __future__ import annotations

from collections import deque
from statistics import median

_KEPT = 15


class Trip:
    """Seconds of a round besides the target's work: the median of the last 15 observed."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=_KEPT)

    def observe(self, seconds: float) -> None:
        """Add the seconds of one round trip; negative ones count as 0."""
        self._seen.append(max(seconds, 0.0))

    @property
    def seconds(self) -> float:
        """The median; 0 before anything was observed."""
        return median(self._seen) if self._seen else 0.0
