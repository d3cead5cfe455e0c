"""Things that are closed at the end of a `with` statement, or of the process."""

from __future__ import annotations

import atexit
import threading
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from time import monotonic, sleep

from typing_extensions import Self

from specllama._home import Home
from specllama.errors import BusyError, SpecllamaError

_PATIENCE = 10.0
"""Seconds that a process that ends waits for other threads to leave what it closes."""

_MOMENT = 0.02
"""Seconds in which a thread that has left it gets Python's lock, even on a busy machine."""


class Closing(ABC):
    """Something that holds resources: `with` closes it, whatever happens inside."""

    @abstractmethod
    def close(self) -> None:
        """Release everything. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_held: weakref.WeakSet[Closing] = weakref.WeakSet()


def close_at_exit(one: Closing) -> None:
    """Close it when the process ends, if it still exists. Metal aborts a process that ends while
    a GPU's memory still holds something, and Python does not collect objects that a thread or a
    reference cycle keeps alive."""
    _held.add(one)


@atexit.register
def _close_held() -> None:
    """Close what is held when no daemon thread is inside any more: one that comes back from C++ to
    a Python that has ended would abort the process."""
    Home.end()
    patience = monotonic() + _PATIENCE
    for one in list(_held):
        with suppress(SpecllamaError):  # it stays open if a thread does not leave it
            _close(one, patience)
    if threading.active_count() > 1:
        sleep(_MOMENT)


def _close(one: Closing, patience: float) -> None:
    while True:
        try:
            return one.close()
        except BusyError:
            if monotonic() >= patience:
                raise
        sleep(_MOMENT)
