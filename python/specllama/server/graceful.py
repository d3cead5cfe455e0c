"""A server that finishes what it has begun."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence
from types import FrameType

import uvicorn

from specllama.server.app import App
from specllama.server.error import log

_MARGIN = 5.0  # seconds to send what there is
# Seconds that a connection stays open without a request: longer than clients keep one (httpx and
# OpenAI's client 5, Node's fetch 4), or a request would meet one that is just being closed.
_KEEP_ALIVE = 75


class GracefulServer(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT. Then nothing new is taken, answers have some
    seconds to finish, and what is unfinished then, or when such a signal comes again, is cut: its
    clients get what there is. A third one ends connections whose clients do not read.

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
                log_config=None,  # who serves says where its warnings go, see UnhurriedHandler
                log_level="warning",
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=int(seconds + _MARGIN),
                # By itself it believes whoever asks from this machine, and a variable of the
                # environment.
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
            )
        )
        self._app = app
        self._seconds = seconds
        self._by_hand = False  # whether somebody at the keyboard ended it
        self._cut = False  # whether a signal came again
        self._loop: asyncio.AbstractEventLoop | None = None  # of a shutdown under way

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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What a signal does."""
        if not self.should_exit:
            self._by_hand = sig == signal.SIGINT
            super().handle_exit(sig, frame)
        elif self._loop is not None and not self._cut:  # uvicorn would break the connections off
            self._cut = True
            self._loop.call_soon_threadsafe(self._app.end_answers)
        else:  # somebody does not read what is cut
            self.force_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(self._seconds, self._app.end_answers)
        if self._by_hand and (n := self._app.n_answers):
            log.info(
                "Answers under way: %d. They have %g seconds to finish; Ctrl-C again cuts them.",
                n,
                self._seconds,
            )
        await super().shutdown(sockets)
