"""Connections to a server that can all be broken off at once."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from weakref import WeakSet

from specllama.errors import ClosedError


class Lines:
    """The connections that threads may be waiting on. Its methods may be called from any
    thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakSet[socket.socket] = WeakSet()
        self._hung_up = threading.Event()

    def keep(self, line: socket.socket) -> None:
        """Add a connection. If `hang_up` has been called, it is broken off at once."""
        with self._lock:
            if not self._hung_up.is_set():
                self._kept.add(line)
                return
        _break_off(line)

    def hang_up(self) -> None:
        """Break off all connections. Threads that wait on them are woken at once."""
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
        """Wait. Raises ClosedError as soon as `hang_up` is called, or if it has been called."""
        if self._hung_up.wait(seconds):
            raise ClosedError("The session was closed before the request had ended.")


def _break_off(line: socket.socket) -> None:
    # Closing a socket would not wake the threads that wait on it. SSLSocket's own shutdown would
    # drop the TLS state that another thread may be using.
    with suppress(OSError):
        socket.socket.shutdown(line, socket.SHUT_RDWR)
