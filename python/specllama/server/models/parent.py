"""Ends a process together with its parent."""

from __future__ import annotations

import os
import signal
import threading

_STDIN = 0


def end_with_parent() -> None:
    """Send SIGTERM to this process when its standard input, a pipe, is closed. This also happens if
    its parent was killed."""
    threading.Thread(target=_wait_for_end, name="parent", daemon=True).start()


def _wait_for_end() -> None:
    # Not through sys.stdin: this thread must not hold its lock when the process ends.
    while os.read(_STDIN, 1 << 10):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
