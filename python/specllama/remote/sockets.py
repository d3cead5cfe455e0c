"""Idle connections, kept for the next generation."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from specllama.remote.link import Link

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class Sockets:
    """WebSockets to /v1/verify/ahead. Opening one takes two round trips, which the next generation
    saves by using an idle one. Safe from any thread.

    Args:
        link: The link to the server.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._idle: list[ClientConnection] = []
        self._closed = False

    def take(self) -> ClientConnection:
        """Return an idle or a new connection. Raises what `Link.socket` raises."""
        from websockets.protocol import State

        while True:
            with self._lock:
                socket = self._idle.pop() if self._idle else None
            if socket is None:
                return self._link.socket("/v1/verify/ahead")
            if socket.state is State.OPEN:
                return socket
            close(socket)  # the server has closed it

    def give(self, socket: ClientConnection) -> None:
        """Keep an idle connection for the next generation."""
        with self._lock:
            if not self._closed:
                self._idle.append(socket)
                return
        close(socket)

    def close(self) -> None:
        """Close all idle connections, and those given from now on."""
        with self._lock:
            self._closed = True
            sockets, self._idle = self._idle, []
        for socket in sockets:
            close(socket)


def close(socket: ClientConnection) -> None:
    """Close a connection, in whatever state it is."""
    with suppress(OSError):
        socket.close()
