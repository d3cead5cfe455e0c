"""The process that serves one model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpcore

from specllama.errors import SpecllamaError
from specllama.server.error import log, printable

_KEY_VARIABLE = "SPECLLAMA_API_KEY"
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_PATIENCE = 10.0
"""Seconds that a process has to end before it is killed."""

_LONGEST_LINE = 1 << 16
_KEPT = 5
"""Number of a process's last log lines that are kept, to report why it ended."""

GONE = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)
"""Errors of a connection to a process that has ended."""

Headers = Sequence[tuple[bytes, bytes]]


class LoadError(SpecllamaError):
    """A model could not be loaded."""


class Child:
    """`specllama serve` for one model, in its own process. Its crash does not affect other models,
    and its end frees all its memory.

    It listens on this machine only, at a socket that it inherits, and requires a key that only this
    process has. It always ends with this process, even if that is killed.

    Args:
        name: The model's name.
        process: The process.
        port: The port that it listens at.
        key: Its key.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, port: int, key: str) -> None:
        self._name = name
        self._process = process
        self._key = key.encode()
        self._host = b"127.0.0.1:%d" % port
        self._pool = httpcore.AsyncConnectionPool(max_connections=None)
        self._said: deque[str] = deque(maxlen=_KEPT)
        self._reading = asyncio.ensure_future(self._read_log())
        self.ended: asyncio.Future[int] = asyncio.ensure_future(self._process.wait())

    @classmethod
    async def start(cls, name: str, arguments: Sequence[str]) -> Child:
        """Start the process; it then loads the model.

        Args:
            name: The model's name.
            arguments: The arguments of `specllama serve`.
        """
        key = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "specllama", "serve", *arguments,
                "--alias", name, "--listen-fd", str(listening.fileno()),
                "--shutdown-timeout", "0", "--forwarded-allow-ips", "127.0.0.1",
                env={**os.environ, _KEY_VARIABLE: key},
                stdin=asyncio.subprocess.PIPE,  # the process ends when this closes
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=[listening.fileno()],
                start_new_session=True,  # Ctrl-C in the terminal is only for this process
                limit=_LONGEST_LINE,
            )  # fmt: skip
            return cls(name, process, listening.getsockname()[1], key)

    async def ready(self) -> None:
        """Wait until the model is loaded. Raises LoadError."""
        # The kernel holds the connection until the process serves, and closes it if the process
        # ends.
        asking = asyncio.ensure_future(self.ask("/health"))
        try:
            awaited: set[asyncio.Future[Any]] = {asking, self.ended}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and asking.exception() is None:
                return
        finally:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError, *GONE):
                await asking
        code = await self._ended_in_time()
        await self._reading
        why = self._said[-1] if self._said else f"its process ended with {code}"
        raise LoadError(why.removeprefix("specllama: "))

    async def ask(self, path: str, body: bytes | None = None) -> bytes:
        """Send a GET, or a POST with this body, and return the body of the answer. Raises GONE."""
        method = "GET" if body is None else "POST"
        async with self.stream(method, path.encode(), [], body or b"") as answer:
            return await answer.aread()

    @asynccontextmanager
    async def stream(
        self, method: str, target: bytes, headers: Headers, body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """Send a request and return its answer, with a body to read. Raises GONE.

        Args:
            method: The request's method.
            target: Path and query.
            headers: The headers that concern the model's server.
            body: The body.
        """
        url = httpcore.URL(scheme=b"http", host=b"127.0.0.1", port=self._port, target=target)
        own = [(b"Host", self._host), (b"Authorization", b"Bearer " + self._key)]
        length = [(b"Content-Length", str(len(body)).encode())] if body else []
        request = httpcore.Request(
            method, url, headers=[*own, *length, *headers], content=body or None
        )
        response = await self._pool.handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()

    @property
    def _port(self) -> int:
        return int(self._host.rpartition(b":")[2])

    def end(self) -> None:
        """Tell the process to end. Its clients get the text generated so far."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    async def stop(self) -> None:
        """End the process, and wait until it has ended."""
        self.end()
        await self._ended_in_time()
        await self._pool.aclose()
        await self._reading

    async def _ended_in_time(self) -> int:
        await asyncio.wait({self.ended}, timeout=_PATIENCE)
        if not self.ended.done():
            self._process.kill()
        return await self.ended

    async def _read_log(self) -> None:
        """Copy the process's log to this process's log."""
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:  # too long
                continue
            if not line:
                return
            said = printable(_TIME.sub("", line.decode(errors="replace").rstrip(), count=1))
            self._said.append(said)
            log.info("[%s] %s", self._name, said)
