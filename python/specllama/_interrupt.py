"""Ctrl-C where something is to be kept."""

from __future__ import annotations

import signal
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from typing_extensions import Self


class Interrupt:
    """Has Ctrl-C call something, which ends a generation say, while a `with` statement lasts, in
    place of raising KeyboardInterrupt wherever it comes: while what there is is being kept.

    Where Ctrl-C is ignored, as behind nohup, it still is.

    Args:
        end: Is called; it must be quick.
        patience: Seconds after which another Ctrl-C raises KeyboardInterrupt: what was to end does
            not.

    Attributes:
        came: Whether there was one.
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
