"""How a thread sleeps until another one has news for it."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX


class Wakeup:
    """One thread waits until others wake it. A call of `wake` before the wait ends it at once; of
    several before it, one counts.

    Ctrl-C may interrupt a main thread in either call: this object stays whole. An Event or a
    Condition would not, whose locks are taken by code in Python: a KeyboardInterrupt raised between
    their taking a lock and the `try` after it leaves the lock taken for ever. The methods of a
    SimpleQueue are in C, and Ctrl-C comes before or after them, or as a put that never was.
    """

    def __init__(self) -> None:
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def wake(self) -> None:
        """End the wait. Never waits itself, so anything may call it, also a finalizer."""
        if self._wakes.empty():  # else whoever waits will come to see what there is, all the same
            self._wakes.put(None)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for `wake`, at most `timeout` seconds; None: as long as it takes."""
        most = None if timeout is None else min(max(timeout, 0), TIMEOUT_MAX)
        with suppress(Empty):
            self._wakes.get(timeout=most)
