"""A slow, narrow or unreliable connection between a client and a server on loopback."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

STALL = 0.2
"""Seconds by which a lost piece and everything after it is delayed."""


class SlowLink:
    """Forwards data between its own port and a server, with a delay.

    Args:
        url: URL of the server.
        delay: Seconds one way; a round trip takes twice as long.
        rate: Bits per second each way (None: unlimited).
        loss: Probability that a piece is lost; it and everything after it is then delayed by
            `STALL`.
        seed: Seed of the losses.
        piece: Bytes that are sent together.
        window: Bytes that the kernel buffers from a client (None: no limit).

    Attributes:
        url: URL for clients.
        n_connections: Number of connections so far.
        n_bytes: Number of bytes forwarded, both ways.
        stalls: If set, nothing is read from either end, as if the server hung.
        n_trips: Number of times that data was sent to the server after data had come back, for
            which the client may have waited; a new connection also counts as one.
    """

    def __init__(
        self,
        url: str,
        *,
        delay: float = 0.0,
        rate: float | None = None,
        loss: float = 0.0,
        seed: int = 0,
        piece: int = 1460,
        window: int | None = None,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.server = (parts.hostname, parts.port)
        self.delay = delay
        self.n_connections = 0
        self.n_bytes = 0
        self.stalls = False
        self.n_trips = 0
        self._heard = True  # the client's next data begins a trip
        self._rate = rate
        self._loss = loss
        self._piece = piece
        self._window = window
        self._random = random.Random(seed)
        self._refuses = False
        self._n_most: int | None = None
        self._stays_down = False
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._listening = self._run(self._listen)
        self.port = self._listening.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def break_all(self) -> None:
        """Close all connections, and drop data in flight."""
        self._run(self._break)

    def refuse(self, refuses: bool = True) -> None:
        """Close new connections at once (False: stop doing so)."""
        self._refuses = refuses

    def cut(self, n_bytes: int | None, *, stays_down: bool = False) -> None:
        """From now on, break every connection after so many bytes from the server (None: never).
        The position does not depend on the clock. stays_down: also `refuse` new connections."""
        self._n_most = n_bytes
        self._stays_down = stays_down

    def close(self) -> None:
        """Close everything."""
        self._run(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, call: Callable[[], object]) -> asyncio.Server:
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()  # type: ignore[arg-type]

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        if self._window is not None:
            server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._window)
        return server

    async def _break(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _end(self) -> None:
        self._listening.close()
        await self._break()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._refuses:
                await self._pass_both(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the server or the connection has gone
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _pass_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self.server)
        self.n_connections += 1
        self.n_trips += 1
        self._heard = True
        self._open |= {writer, far_writer}
        ways = [
            asyncio.ensure_future(self._pass(reader, far_writer, is_answer=False)),
            asyncio.ensure_future(self._pass(far_reader, writer, is_answer=True)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._open -= {writer, far_writer}
            far_writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        on_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.ensure_future(self._arrive(on_way, writer))
        sent = 0.0  # when the connection is free again
        n_bytes = 0
        try:
            while piece := await reader.read(self._piece):
                while self.stalls:
                    await asyncio.sleep(0.005)
                n_bytes += len(piece)
                self.n_trips += self._heard and not is_answer
                self._heard = is_answer
                if is_answer and self._n_most is not None and n_bytes > self._n_most:
                    self._refuses = self._refuses or self._stays_down
                    break
                now = self._loop.time()
                sent = max(sent, now)
                if self._random.random() < self._loss:
                    sent += STALL
                if self._rate is not None:
                    sent += 8 * len(piece) / self._rate
                on_way.put_nowait((sent + self.delay, piece))
            on_way.put_nowait((max(sent, self._loop.time()) + self.delay, b""))
            await arriving
            if piece:  # everything sent before has arrived
                raise ConnectionResetError
        finally:
            arriving.cancel()

    async def _arrive(
        self, on_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        while True:
            when, piece = await on_way.get()
            if (late := when - self._loop.time()) > 0:
                await asyncio.sleep(late)
            if not piece:
                with suppress(OSError):
                    writer.write_eof()
                return
            self.n_bytes += len(piece)
            writer.write(piece)
            await writer.drain()


@contextmanager
def slow_link(url: str, **line: Any) -> Iterator[SlowLink]:
    """Put a slow link before a server; arguments are those of `SlowLink`."""
    link = SlowLink(url, **line)
    try:
        yield link
    finally:
        link.close()
