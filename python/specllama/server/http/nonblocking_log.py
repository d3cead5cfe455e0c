"""Logging that never blocks, even if the log's reader does not read."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time

_MOST_WAITING = 256
_PATIENCE = 1.0
"""Seconds that `close` waits for unwritten lines."""


class NonblockingHandler(logging.Handler):
    """Writes lines to a file descriptor from its own thread. A pipe without a reader is full after
    some hundred lines. A write by the event loop would then block all requests. Lines that do not
    fit into the queue are dropped.

    Args:
        descriptor: Where to write, 2 for stderr.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or drop it if the queue is full. Never waits."""
        try:
            self._lines.put_nowait(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except queue.Full:
            return

    def close(self) -> None:
        """Wait up to a second for lines that are not written yet."""
        until = time.monotonic() + _PATIENCE
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.01)
        super().close()

    def _write(self) -> None:
        # Not through sys.stderr: this thread must not hold its lock when the process ends.
        while True:
            line = self._lines.get()
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:  # closed, so an error cannot be reported
                pass
            self._lines.task_done()
