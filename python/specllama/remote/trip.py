"""How long the way to a server and back takes."""

from __future__ import annotations

from collections import deque
from statistics import median

_KEPT = 15


class Trip:
    """Seconds that a round takes beside the target's work: the median of those seen last."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=_KEPT)

    def observe(self, seconds: float) -> None:
        """See one."""
        self._seen.append(max(seconds, 0.0))

    @property
    def seconds(self) -> float:
        """As of now; 0 where none was seen."""
        return median(self._seen) if self._seen else 0.0
