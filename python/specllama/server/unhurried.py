"""Telling what happens to whoever may not listen."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time

_MOST_WAITING = 256
_PATIENCE = 1.0
"""Seconds that `close` gives what waits."""


class UnhurriedHandler(logging.Handler):
    """Writes lines to a file descriptor from a thread of its own: a pipe that nobody reads is full
    after some hundred lines, and who wrote to it then would stand still, with all requests. Lines
    for which there is no room are left out.

    Args:
        descriptor: Where to write, 2 for stderr.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record written, if there is room; never waits."""
        try:
            self._lines.put_nowait(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except queue.Full:
            return

    def close(self) -> None:
        """Wait a little for what is not written yet."""
        until = time.monotonic() + _PATIENCE
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.01)
        super().close()

    def _write(self) -> None:
        # Not through sys.stderr: at the end of the process nobody may hold its lock.
        while True:
            line = self._lines.get()
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:  # closed: there is nobody to be told
                pass
            self._lines.task_done()
