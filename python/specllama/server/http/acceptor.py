"""Accepts connections, as many as the process may have."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Collection

from specllama.server.error import log
from specllama.server.http.connection import Connection, prepare

_MOST_CONNECTIONS = 1000
_SPARED = 32
"""Files that the process may open in addition to connections."""

_PAUSE = 0.1
_QUIET = 60.0
"""Minimum seconds between two warnings."""


class Acceptor:
    """Accepts the connections of listening sockets, up to a maximum number. At the maximum, a new
    connection replaces the one whose client has been silent the longest. If no client is silent,
    new connections wait in the kernel.

    asyncio's own server accepts connections until the process cannot open another file, and then
    retries without end.

    Args:
        connections: The open connections.
        make: Returns the protocol of a new connection.
        most: Maximum number of connections; None: 1000, or fewer if the process cannot open as
            many.
    """

    def __init__(
        self,
        connections: Collection[object],
        make: Callable[[], asyncio.Protocol],
        most: int | None = None,
    ) -> None:
        self._connections = connections
        self._make = make
        self._most = _most_connections() if most is None else most
        self._warned = -_QUIET

    async def run(self, listening: socket.socket) -> None:
        """Accept connections until this is cancelled."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            try:
                taken, _ = await loop.sock_accept(listening)
            except OSError as error:  # no file can be opened, or the client has disconnected
                self._warn(f"A connection cannot be accepted: {error.strerror}.")
                await asyncio.sleep(_PAUSE)
                continue
            while len(self._connections) >= self._most:
                await self._make_room()
            try:
                prepare(taken)
                await loop.connect_accepted_socket(self._make, taken)
            except OSError:
                taken.close()

    async def _make_room(self) -> None:
        self._warn(
            f"{self._most} connections are open, the maximum of this process. Those of silent "
            "clients are closed; `ulimit -n` raises the maximum."
        )
        silent = [one for one in self._connections if isinstance(one, Connection) and one.is_silent]
        if silent:
            min(silent, key=lambda one: one.silent_since).abort()
        await asyncio.sleep(0 if silent else _PAUSE)

    def _warn(self, what: str) -> None:
        if time.monotonic() - self._warned >= _QUIET:
            self._warned = time.monotonic()
            log.warning(what)


def _most_connections() -> int:
    if sys.platform == "win32":
        return 400  # of the 512 that its select accepts
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(min(_MOST_CONNECTIONS, limit - _n_open() - _SPARED), 1)


def _n_open() -> int:
    """Return the number of files that the process has open."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 64
