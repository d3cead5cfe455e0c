"""v(n), the time of a target decode of n tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


class DecodeTimes(tuple[float, ...]):
    """v(1), v(2), ... as far as they are known, in seconds or in any other unit. May be empty.

    It is a tuple, so NumPy and JSON accept it as a list of numbers. It need not rise with n.
    """

    __slots__ = ()

    def of(self, n: int) -> float:
        """Return v(n). Raises IndexError if n is larger than `len(self)`."""
        return self[n - 1]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """v(n) / v(1) for n = 1, 2, ..., shape [len(self)]."""
        return np.asarray(self) / self.of(1)

    @classmethod
    def through(cls, points: Mapping[int, float], n_most: int) -> DecodeTimes:
        """Return v(1) to v(n_most). The curve is linear between known points; beyond the last point
        it continues with the slope between the last two, or level if that is negative.

        Args:
            points: v(n) at some n, including 1.
            n_most: Widest decode.
        """
        known = sorted(points)
        times = [points[n] for n in known]
        n = np.arange(1, n_most + 1)
        curve = np.interp(n, known, times)
        if len(known) > 1:
            slope = (times[-1] - times[-2]) / (known[-1] - known[-2])
            # A curve that falls at its end must not continue below 0.
            curve = np.where(n > known[-1], times[-1] + max(slope, 0.0) * (n - known[-1]), curve)
        return cls(curve.tolist())


DecodeTimesLike: TypeAlias = DecodeTimes | Callable[[int], float] | ArrayLike
"""The forms of v in `specllama.theory`: a function of n, or the times for 1, 2, 3, ... tokens."""
