"""Connections to a server that can all be closed at once."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from weakref import WeakSet

from specllama.errors import ClosedError


class Lines:
    """The connections on which threads may be waiting. Any thread may call the methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakSet[socket.socket] = WeakSet()
        self._hung_up = threading.Event()

    def keep(self, line: socket.socket) -> None:
        """Add a connection. If `hang_up` has been called, it is closed at once."""
        with self._lock:
            if not self._hung_up.is_set():
                self._kept.add(line)
                return
        _break_off(line)

    def hang_up(self) -> None:
        """Close all connections. Threads that wait on them wake at once."""
        with self._lock:
            self._hung_up.set()
            lines = list(self._kept)
        for line in lines:
            _break_off(line)

    @property
    def hung_up(self) -> bool:
        """Whether `hang_up` has been called."""
        return self._hung_up.is_set()

    def wait(self, seconds: float) -> None:
        """Wait. Raises ClosedError as soon as `hang_up` is called, or if it was called before."""
        if self._hung_up.wait(seconds):
            raise ClosedError("The session was closed before the request had ended.")


def _break_off(line: socket.socket) -> None:
    # Closing a socket would not wake the threads that wait on it. The shutdown of SSLSocket would
    # drop the TLS state, which another thread may be using.
    with suppress(OSError):
        socket.socket.shutdown(line, socket.SHUT_RDWR)
