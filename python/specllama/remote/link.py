"""The connection to a server that verifies."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from specllama import _check
from specllama.errors import ArgumentError, QueueFullError, RemoteError
from specllama.remote.lines import Lines

if TYPE_CHECKING:
    import httpx
    from websockets.sync.client import ClientConnection

_ATTEMPTS = 6
_FIRST_PAUSE = 0.1
"""Seconds before the second attempt; the pause doubles before each further one."""
_CONNECT_SECONDS = 10.0
_OPENED = ("connection.connect_tcp.complete", "connection.start_tls.complete")
"""Events that httpx traces when it has a new socket."""
_FROM_PROXIES = (502, 503, 504)
"""HTTP status of a proxy that does not reach the server, perhaps only for a moment."""


class GoneError(RemoteError):
    """The server has forgotten a generation, or has other tokens of it than the client."""


class NotFoundError(RemoteError):
    """The server has nothing at this path."""


class Link:
    """Sends requests to a server that has the target.

    A request that breaks off is repeated several times. That is safe: each round has its number,
    and the server keeps a round's answer until the next.

    Args:
        url: The server's address, e.g. "http://192.168.0.7:8080".
        key: The API key; None: the server needs none.
        timeout: Most seconds to wait for an answer.
        kind: The kind of server that it must be, for error messages.

    Raises:
        ArgumentError: The URL cannot be used, or a package is missing.
    """

    def __init__(
        self, url: str, key: str | None, timeout: float, *, kind: str = "a specllama"
    ) -> None:
        try:
            import httpx
            import websockets.sync.client
        except ImportError as error:
            raise ArgumentError(
                f"A target elsewhere needs {error.name}; run: pip install specllama[remote]"
            ) from None
        if not _is_server(url):
            raise ArgumentError(
                "target must be the URL of a server, like http://host:8080, not "
                f"{_check.quoted(url)}."
            )
        if key is not None and (not key.isprintable() or key != key.strip() or not key):
            raise ArgumentError(
                "target_key is empty, or has spaces around it or characters that are not printable."
            )
        scheme, _, rest = url.partition(":")
        self.url = f"{scheme.lower()}:{rest}".rstrip("/").removesuffix("/v1")
        self._kind = kind
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._lines = Lines(timeout)
        self._is_deaf = False
        self._connect = websockets.sync.client.connect
        self._client = httpx.Client(
            base_url=self.url,
            headers=[(name.encode(), value.encode()) for name, value in self._headers.items()],
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_keepalive_connections=64, keepalive_expiry=600),
            trust_env=False,
        )

    def get(self, path: str) -> dict[str, Any]:
        """Return the answer to a GET. Raises what `post` raises."""
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a POST.

        Raises:
            ArgumentError: The server refuses the request as invalid.
            QueueFullError: The server is busy, or this client has as many generations as it may.
            GoneError: The generation that the request is about no longer exists.
            NotFoundError: The server has nothing at this path.
            RemoteError: The server cannot be reached, or failed.
            ClosedError: `hang_up` was called, before the request or during it.
        """
        return self._ask("POST", path, json.dumps(body, separators=(",", ":")).encode())

    def delete(self, path: str) -> None:
        """Ask the server to forget something; errors are ignored. This works after `hang_up`, too,
        until the server fails to answer once."""
        import httpx

        if self._is_deaf:
            return
        try:
            self._client.request("DELETE", path, timeout=1.0)
        except httpx.HTTPError:
            self._is_deaf = self._lines.hung_up

    def socket(self, path: str) -> ClientConnection:
        """Open a WebSocket. Raises RemoteError, and ClosedError as `post` does.

        If the server takes none of what is sent for as long as the timeout, the WebSocket is
        closed, and `send` raises ConnectionClosed.
        """
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import ClientConnection

        def connection(line: socket.socket, *rest: Any, **options: Any) -> ClientConnection:
            self._lines.keep(line)
            self._lines.limit(line)
            return ClientConnection(line, *rest, **options)

        url = "ws" + self.url.removeprefix("http") + path
        last: Exception | None = None
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                # Whoever called this closes it.
                return self._connect(
                    url,
                    # websockets sends headers in Latin-1, but the key is to go out in UTF-8.
                    additional_headers={
                        name: value.encode().decode("latin-1")
                        for name, value in self._headers.items()
                    },
                    create_connection=cast(Any, connection),
                    open_timeout=_CONNECT_SECONDS,
                    close_timeout=1.0,
                    compression=None,
                    max_size=None,
                    proxy=None,
                ).__enter__()
            except InvalidStatus as error:
                if error.response.status_code in _FROM_PROXIES:
                    last = error
                    continue
                raise RemoteError(
                    f"{self.url} takes no connection: HTTP status {error.response.status_code}. "
                    "Is it a specllama server, and is target_key right?"
                ) from None
            except (OSError, WebSocketException, EOFError) as error:
                last = error
        raise RemoteError(f"Cannot reach {self.url}: {str(last) or type(last).__name__}.")

    def hang_up(self) -> None:
        """Break off all requests and WebSockets, and refuse new ones; from any thread. A connection
        that is just being made is not broken off: that takes 10 seconds at most."""
        self._lines.hang_up()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        import httpx

        headers = {} if body is None else {"Content-Type": "application/json"}
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                answer = self._client.request(
                    method, path, content=body, headers=headers, extensions={"trace": self._note}
                )
                return self._read(answer)
            except httpx.ReadTimeout:
                raise RemoteError(
                    f"{self.url} has not said a word for {self._timeout:g} s (target_timeout)."
                ) from None
            except _BrokenOffError as error:
                last = str(error)
            except httpx.TransportError as error:
                last = str(error) or type(error).__name__
            except httpx.RequestError as error:  # e.g. encoded otherwise than it says
                raise RemoteError(f"{self.url} answered what cannot be read: {error}.") from None
        raise RemoteError(f"Cannot reach {self.url}: {last}.")

    def _pause(self, attempt: int) -> None:
        self._lines.wait(_FIRST_PAUSE * 2 ** (attempt - 1) if attempt > 0 else 0)

    def _note(self, event: str, told: dict[str, Any]) -> None:
        if event in _OPENED:
            self._lines.keep(told["return_value"].get_extra_info("socket"))

    def parsed(self, message: str | bytes) -> dict[str, Any]:
        """Return the JSON object in a message. Raises RemoteError if the message is not one."""
        told = _object(message)
        if told is None:
            raise RemoteError(f"{self.url} gave no JSON object; is it {self._kind} server?")
        return told

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.is_success:
            return self.parsed(answer.content)
        told, status = _object(answer.content), answer.status_code
        if told is None and status in _FROM_PROXIES:
            raise _BrokenOffError(f"HTTP status {status}")
        raise error_of(self.url, status, told or {})


class _BrokenOffError(Exception):
    """A proxy does not reach the server."""


def _object(message: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in a message; None if the message is not one."""
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _is_server(url: str) -> bool:
    import httpx

    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):  # not an address, or the port is not a number
        return False
    plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and plain


def error_of(url: str, status: int, told: dict[str, Any]) -> Exception:
    """Return the exception for an answer that reports an error."""
    error = told.get("error")
    said = error.get("message", "") if isinstance(error, dict) else told.get("message", "")
    message = said or f"HTTP status {status}."
    if status in (409, 410):
        return GoneError(message)
    if status == 503:
        return QueueFullError(f"{url}: {said or 'It is busy; try again later.'}")
    if status == 404:
        return NotFoundError(f"{url} does not verify drafts: {message}")
    if status in (400, 413):
        return ArgumentError(said or f"{url} answered with HTTP status {status}.")
    if status in (401, 403):
        return RemoteError(f"{url} refuses: {message} (target_key)")
    why = f": {said}" if said else "."
    return RemoteError(f"{url} failed with HTTP status {status}{why}")
