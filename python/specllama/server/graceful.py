"""A server that finishes what it has begun."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence

import uvicorn

from specllama.server.app import App

_MARGIN = 5.0  # seconds to send what there is


class GracefulServer(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT. Then nothing new is taken, answers have some
    seconds to finish, and what is unfinished then is cut: its clients get what there is.

    Args:
        app: The application.
        seconds: How long answers may take to finish.
        proxies: Addresses or networks that are believed who asks (X-Forwarded-For).
    """

    def __init__(self, app: App, seconds: float, proxies: Sequence[str] = ()) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_level="warning",
                timeout_graceful_shutdown=int(seconds + _MARGIN),
                # By itself it believes whoever asks from this machine, and a variable of the
                # environment.
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
            )
        )
        self._app = app
        self._seconds = seconds

    def serve_at(self, listening: socket.socket) -> None:
        """Serve at a listening socket. Returns after SIGTERM; after SIGINT raises
        KeyboardInterrupt."""
        # uvicorn sends itself the signal again when it is done: SIGTERM is nothing special then.
        before = signal.signal(signal.SIGTERM, self.handle_exit)
        try:
            self.run(sockets=[listening])
        finally:
            signal.signal(signal.SIGTERM, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # What is written in parts goes out at once, not when the client's 40 ms for its next word
        # are over. (asyncio sees to that only where the socket knows that it is TCP.)
        for listening in sockets or []:
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._seconds, self._app.end_answers)
        await super().shutdown(sockets)
