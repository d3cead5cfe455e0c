"""Objects that are closed at the end of a `with` statement, or of the process."""

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
"""Seconds after which a thread that has returned from C++ holds Python's lock again, even on a busy
machine."""


class Closing:
    """An object with resources. A `with` statement closes it, also after an error."""

    def close(self) -> None:
        """Release everything. Closing twice is allowed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_held: weakref.WeakSet[Closing] = weakref.WeakSet()


def close_at_exit(one: Closing) -> None:
    """Close an object when the process ends, if it still exists. Metal aborts a process that ends
    while GPU memory is still in use, and Python does not free objects that a thread or a reference
    cycle keeps alive."""
    _held.add(one)


@atexit.register
def _close_held() -> None:
    """Close the registered objects. This waits for the daemon threads inside them: a thread that
    returns from C++ after Python has ended would abort the process."""
    ProcessGuard.end()
    for one in list(_held):
        with suppress(SpecllamaError):
            one.close()
    if threading.active_count() > 1:
        sleep(_MOMENT)
