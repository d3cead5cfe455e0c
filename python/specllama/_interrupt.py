"""Ctrl-C while results are being kept."""

from __future__ import annotations

import signal
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from typing_extensions import Self


class Interrupt:
    """While a `with` statement lasts, Ctrl-C calls a function, for example one that ends a
    generation, instead of raising KeyboardInterrupt at any point of the code that keeps results.

    Where Ctrl-C is ignored, as under nohup, it still is.

    Args:
        end: The function to call; it must be quick.
        patience: Seconds after the first Ctrl-C from which another one raises KeyboardInterrupt:
            `end` has failed to end the work.

    Attributes:
        came: Whether Ctrl-C was pressed.
    """

    def __init__(self, end: Callable[[], object], *, patience: float) -> None:
        self.came = False
        self._end = end
        self._patience = patience
        self._lost_patience = inf
        self._before: Any = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        if monotonic() >= self._lost_patience:
            raise KeyboardInterrupt
        self._lost_patience = min(self._lost_patience, monotonic() + self._patience)
        self.came = True
        self._end()
