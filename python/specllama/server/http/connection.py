"""A client's connection, with a limit on idle time."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING

from specllama.server.error import ApiError, encoded

if TYPE_CHECKING:  # uvicorn chooses one; they agree in what is used here
    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol

# Longer than an idle connection stays open between two requests, see graceful.py.
_PATIENCE = 150
"""Seconds after which a connection is closed if its client sends no request, or reads nothing of an
answer. The number of connections is limited, and such clients could occupy them all."""


class Connection(HttpProtocol):
    """uvicorn's connection with a limit on the wait for a request. uvicorn itself waits without
    limit for a first request, and for the rest of a request after its first bytes."""

    silent_since = 0.0
    """When the server began to wait for the client, by the event loop's clock."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP."""
        body = encoded(ApiError(400, f"{msg.rstrip('.')}; send HTTP/1.1.").body)
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-length: {len(body)}\r\n"
        more = "content-type: application/json\r\nconnection: close\r\n\r\n"
        self.transport.write(f"{head}{more}".encode() + body)
        self.transport.close()

    @property
    def is_silent(self) -> bool:
        """Whether the server waits for the client: for a request, or for the rest of one."""
        asked = self.cycle is not None and not self.cycle.response_complete
        return not asked or self.cycle.more_body

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _expect(self) -> None:
        loop = asyncio.get_running_loop()
        self.silent_since = loop.time()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(_PATIENCE, self._close_if_idle)

    def _close_if_idle(self) -> None:
        asked = self.cycle is not None and not self.cycle.response_complete
        if not asked:
            self.transport.close()


def prepare(taken: socket.socket) -> None:
    """Set the options of a connection. (Connections that arrived before the listening socket had
    these options would not inherit them.)"""
    # Send each part of an answer at once, instead of waiting up to 40 ms for the client's ACK.
    # (asyncio sets this only on sockets that were created with TCP as their protocol.)
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Detect a client that is gone without closing, such as a machine that was switched off, also
    # while its answer is being generated.
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PATIENCE)
        # Only the kernel knows whether the client reads what was sent.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _PATIENCE)
