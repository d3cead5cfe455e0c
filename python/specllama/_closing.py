"""Things that are closed at the end of a `with` statement, or of the process."""

from __future__ import annotations

import atexit
import threading
import weakref
from contextlib import suppress
from time import sleep

from typing_extensions import Self

from specllama._process import ProcessGuard
from specllama.errors import SpecllamaError

_MOMENT = 0.02
"""Seconds in which a thread that has left it gets Python's lock, even on a busy machine."""


class Closing:
    """Something that holds resources: `with` closes it, whatever happens inside."""

    def close(self) -> None:
        """Release everything. Closing twice is fine."""
        raise NotImplementedError

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
    """Close what is held, which waits until no daemon thread is inside any more: one that comes
    back from C++ to a Python that has ended would abort the process."""
    ProcessGuard.end()
    for one in list(_held):
        with suppress(SpecllamaError):
            one.close()
    if threading.active_count() > 1:
        sleep(_MOMENT)
