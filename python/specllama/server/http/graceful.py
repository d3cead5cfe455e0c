"""A server that finishes its answers before it stops."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence
from types import FrameType
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from specllama.server.error import log
from specllama.server.http.acceptor import Acceptor
from specllama.server.http.connection import Connection

_MARGIN = 5.0  # seconds to send the text generated so far
# Seconds that a connection stays open without a request. Longer than clients keep one (httpx and
# OpenAI's client 5, Node's fetch 4); otherwise a client could use a connection that is being
# closed.
_KEEP_ALIVE = 75


class Application(Protocol):
    """An application for a GracefulServer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    @property
    def n_answers(self) -> int:
        """Number of answers in progress."""

    def end_answers(self) -> None:
        """End them. Every client gets the text generated so far."""


class GracefulServer(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT. Then it accepts no new request, and answers
    have some seconds to finish. After these, or at a second signal, unfinished answers are cut:
    their clients get the text generated so far. A third signal closes connections whose clients do
    not read.

    Args:
        app: The application.
        seconds: Time that answers have to finish.
        proxies: Addresses or networks whose X-Forwarded-For is trusted to name the client.
        most_connections: Maximum number of connections; None: 1000, or fewer if the process cannot
            open as many.
    """

    def __init__(
        self,
        app: Application,
        seconds: float,
        proxies: Sequence[str] = (),
        most_connections: int | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="on",
                log_config=None,  # `serve` sets up logging, see NonblockingHandler
                log_level="warning",
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=int(seconds + _MARGIN),
                # uvicorn's default trusts proxies on this machine, and those in an environment
                # variable.
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
            )
        )
        self._app = app
        self._seconds = seconds
        self._most_connections = most_connections
        self._accepting: list[asyncio.Future[None]] = []
        self._by_hand = False  # whether Ctrl-C ended it
        self._cut = False  # whether a second signal came
        self._loop: asyncio.AbstractEventLoop | None = None  # set during shutdown

    def serve_at(self, listening: Sequence[socket.socket]) -> None:
        """Serve at listening sockets. Returns after SIGTERM; after SIGINT raises
        KeyboardInterrupt."""
        # After its shutdown uvicorn raises the signal again; with this handler SIGTERM is then
        # harmless.
        before = signal.signal(signal.SIGTERM, self.handle_exit)
        try:
            self.run(sockets=list(listening))
        finally:
            signal.signal(signal.SIGTERM, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        acceptor = Acceptor(self.server_state.connections, self._connection, self._most_connections)
        for listening in sockets or []:
            listening.listen(self.config.backlog)
            self._accepting.append(asyncio.ensure_future(acceptor.run(listening)))

    def _connection(self) -> asyncio.Protocol:
        return Connection(self.config, self.server_state, self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.should_exit:
            self._by_hand = sig == signal.SIGINT
            super().handle_exit(sig, frame)
        elif not self._cut:  # uvicorn would drop the connections
            self._cut = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._app.end_answers)
        else:  # a client does not read its answer
            self.force_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(0 if self._cut else self._seconds, self._app.end_answers)
        if self._by_hand and (n := self._app.n_answers):
            log.info(
                "Answers in progress: %d. They have %g seconds to finish; Ctrl-C again cuts them.",
                n,
                self._seconds,
            )
        for one in self._accepting:
            one.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)
        # Clients that do not read keep theirs open.
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # until the transports are closed
