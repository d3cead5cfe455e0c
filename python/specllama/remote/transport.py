"""HTTP with a server that may be broken or hostile: the size and the time of its answers are
limited."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpcore

from specllama.errors import RemoteError
from specllama.formats.wire import MOST_BYTES
from specllama.remote.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 600.0
_CONNECTIONS = 100


class Reply(NamedTuple):
    """An answer of any status."""

    status: int
    body: bytes


class TooLateError(Exception):
    """The answer was not complete in time."""


class BrokenOffError(Exception):
    """The connection could not be opened, or failed."""


class Transport:
    """Sends requests over connections that are kept open. Any thread may use it.

    Args:
        url: The server's address.
        headers: Headers of every request.
        lines: Every connection is added to it.
    """

    def __init__(self, url: str, headers: dict[str, str], lines: Lines) -> None:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        self._url = url
        self._scheme, self._host, self._port = parts.scheme.encode(), host, parts.port
        self._path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
        bracketed = b"[%b]" % host if b":" in host else host
        self._headers = [
            (b"Host", bracketed if parts.port is None else b"%b:%d" % (bracketed, parts.port)),
            # No compression: a few compressed bytes could become gigabytes.
            (b"Accept-Encoding", b"identity"),
            *((name.encode(), value.encode()) for name, value in headers.items()),
        ]
        self._clock = _Clock()
        self._pool = httpcore.ConnectionPool(
            max_connections=_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=_Backend(self._clock, lines),
        )

    def request(self, method: str, path: str, body: bytes | None, deadline: float) -> Reply:
        """Return the answer to a request.

        Args:
            method: GET, POST or DELETE.
            path: The path, appended to that of the server's address.
            body: JSON, or None.
            deadline: Time of `time.monotonic` by which the answer must be complete.

        Raises:
            BrokenOffError: The request may be sent again.
            TooLateError: The answer was not complete at the deadline.
            RemoteError: The answer is too long, or compressed.
        """
        headers = [*self._headers]
        if body is not None:
            headers.append((b"Content-Type", b"application/json"))
        url = httpcore.URL(
            scheme=self._scheme,
            host=self._host,
            port=self._port,
            target=(self._path + path).encode(),
        )
        try:
            with (
                self._clock.set(deadline),
                self._pool.stream(
                    method,
                    url,
                    headers=headers,
                    content=body,
                    extensions={"timeout": {"pool": self._clock.left()}},
                ) as response,
            ):
                self._check_plain(response.headers)
                return Reply(response.status, self._whole(response.iter_stream()))
        except (httpcore.ReadTimeout, httpcore.WriteTimeout, httpcore.PoolTimeout):
            raise TooLateError from None
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise BrokenOffError(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _check_plain(self, headers: list[tuple[bytes, bytes]]) -> None:
        for name, value in headers:
            if name.lower() == b"content-encoding" and value.lower() != b"identity":
                raise RemoteError(
                    f"{self._url} sent a compressed answer (Content-Encoding: "
                    f"{value[:40].decode('latin-1')!r}), which was not requested."
                )

    def _whole(self, parts: Iterable[bytes]) -> bytes:
        body = bytearray()
        for part in parts:
            body += part
            if len(body) > MOST_BYTES:
                raise RemoteError(
                    f"{self._url} sent an answer of more than {MOST_BYTES >> 20} MiB."
                )
        return bytes(body)


class _Clock(threading.local):
    """The deadline of the current request, for each thread."""

    def __init__(self) -> None:
        self._deadline = float("inf")

    @contextmanager
    def set(self, deadline: float) -> Iterator[None]:
        self._deadline = deadline
        try:
            yield
        finally:
            self._deadline = float("inf")

    def left(self) -> float:
        """Return the remaining seconds, more than 0."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return min(left, threading.TIMEOUT_MAX)


class _Backend(httpcore.NetworkBackend):
    """Opens connections. The request's deadline limits each of their steps."""

    def __init__(self, clock: _Clock, lines: Lines) -> None:
        self._clock = clock
        self._lines = lines
        self._inner = httpcore.SyncBackend()

    def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> _Stream:
        timeout = min(self._clock.left(), CONNECT_SECONDS)
        stream = self._inner.connect_tcp(host, port, timeout)
        return _Stream(stream, self._clock, self._lines)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, clock: _Clock, lines: Lines) -> None:
        self._inner = inner
        self._clock = clock
        self._lines = lines
        lines.keep(inner.get_extra_info("socket"))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        line = self._inner.get_extra_info("socket")
        rest = memoryview(buffer)
        try:
            while rest:
                line.settimeout(self._clock.left())
                rest = rest[line.send(rest) :]
        except TimeoutError:
            raise httpcore.WriteTimeout from None
        except OSError as error:
            raise httpcore.WriteError(error) from None

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Stream:
        left = min(self._clock.left(), CONNECT_SECONDS)
        return _Stream(
            self._inner.start_tls(ssl_context, server_hostname, left), self._clock, self._lines
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
