"""Connections that one generation leaves to the next."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from specllama.remote.link import Link

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class Sockets:
    """WebSockets to /v1/verify/ahead: opening one takes two trips, which the next generation is
    spared. From any thread.

    Args:
        link: To the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._idle: list[ClientConnection] = []
        self._closed = False

    def take(self) -> ClientConnection:
        """Return a connection over which nothing is at work. Raises what `Link.socket` does."""
        from websockets.protocol import State

        while True:
            with self._lock:
                socket = self._idle.pop() if self._idle else None
            if socket is None:
                return self._link.socket("/v1/verify/ahead")
            if socket.state is State.OPEN:
                return socket
            close(socket)  # the server has given it up

    def give(self, socket: ClientConnection) -> None:
        """Leave one to the next."""
        with self._lock:
            if not self._closed:
                self._idle.append(socket)
                return
        close(socket)

    def close(self) -> None:
        """Close what is idle, and what will be."""
        with self._lock:
            self._closed = True
            sockets, self._idle = self._idle, []
        for socket in sockets:
            close(socket)


def close(socket: ClientConnection) -> None:
    """Close a connection, whatever has become of it."""
    with suppress(OSError):
        socket.close()
