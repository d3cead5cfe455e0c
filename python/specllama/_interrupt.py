"""Ctrl-C that ends work but keeps its results."""

from __future__ import annotations

import signal
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from typing_extensions import Self


class Interrupt:
    """Within a `with` statement, Ctrl-C calls a function, e.g. one that ends a generation. It does
    not raise KeyboardInterrupt, which could interrupt the code that keeps results.

    If Ctrl-C is ignored, as under nohup, it stays ignored.

    Args:
        end: The function to call; it must be quick.
        patience: Seconds after the first Ctrl-C. A later Ctrl-C raises KeyboardInterrupt, because
            `end` has not ended the work.

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
