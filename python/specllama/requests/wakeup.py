"""Waiting of one thread for another, safe against Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX


class Wakeup:
    """One thread waits until others wake it. A `wake` before the wait ends it at once; several
    count as one.

    If Ctrl-C interrupts either call in the main thread, this object stays consistent. An Event or a
    Condition would not: they take their locks in Python code, and a KeyboardInterrupt between
    taking a lock and the `try` after it would leave the lock taken for ever. The methods of a
    SimpleQueue are in C: Ctrl-C comes before or after them, or prevents a put.
    """

    def __init__(self) -> None:
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def wake(self) -> None:
        """End the wait. Never waits itself, so anything may call it, even a finalizer."""
        if self._wakes.empty():  # else the waiting thread will wake anyway
            self._wakes.put(None)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for `wake`, at most `timeout` seconds (None: no limit)."""
        most = None if timeout is None else min(max(timeout, 0), TIMEOUT_MAX)
        with suppress(Empty):
            self._wakes.get(timeout=most)
