"""The connection to a server that verifies."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from specllama import _check
from specllama.errors import ArgumentError, QueueFullError, RemoteError

if TYPE_CHECKING:
    import httpx
    from websockets.sync.client import ClientConnection

_ATTEMPTS = 6
_FIRST_PAUSE = 0.1
"""Seconds before the second attempt; before each other one twice as many as before the last."""
_CONNECT_SECONDS = 10.0
_FROM_PROXIES = (502, 503, 504)
"""HTTP status where the server behind it is not there, maybe for a moment."""


class GoneError(RemoteError):
    """The server has forgotten a generation, or is at another place of it."""


class NotFoundError(RemoteError):
    """The server has nothing there."""


class Link:
    """Asks a server for its target's work.

    What breaks off is asked for again some times: each round has its number, and its answer is
    kept there until the next.

    Args:
        url: Where the server is, e.g. "http://192.168.0.7:8080".
        key: The API key; None: it needs none.
        timeout: Most seconds to wait for an answer.
        kind: Of server that it has to be, for errors.

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
        self.url = url.rstrip("/").removesuffix("/v1")
        self._kind = kind
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._connect = websockets.sync.client.connect
        self._client = httpx.Client(
            base_url=self.url,
            headers=[(name.encode(), value.encode()) for name, value in self._headers.items()],
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_keepalive_connections=64, keepalive_expiry=600),
            trust_env=False,
        )

    def get(self, path: str) -> dict[str, Any]:
        """Return an answer. Raises as `post`."""
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return an answer.

        Raises:
            ArgumentError: The server refuses what was asked.
            QueueFullError: It is busy, or has as many generations of this client as it may.
            GoneError: What was asked about is not there any more.
            NotFoundError: There is nothing there.
            RemoteError: It cannot be reached, or failed.
        """
        return self._ask("POST", path, json.dumps(body, separators=(",", ":")).encode())

    def delete(self, path: str) -> None:
        """Have something forgotten; whether that works does not matter."""
        import httpx

        with suppress(httpx.HTTPError):
            self._client.request("DELETE", path, timeout=1.0)

    def socket(self, path: str) -> ClientConnection:
        """Open a WebSocket. Raises RemoteError."""
        from websockets.exceptions import InvalidStatus, WebSocketException

        url = "ws" + self.url.removeprefix("http") + path
        last: Exception | None = None
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                # Closed by who asked for it.
                return self._connect(
                    url,
                    # It sends them in Latin-1; the key is UTF-8.
                    additional_headers={
                        name: value.encode().decode("latin-1")
                        for name, value in self._headers.items()
                    },
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

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        import httpx

        headers = {} if body is None else {"Content-Type": "application/json"}
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                answer = self._client.request(method, path, content=body, headers=headers)
                return self._read(answer)
            except httpx.ReadTimeout:
                raise RemoteError(
                    f"{self.url} has not said a word for {self._timeout:g} s (target_timeout)."
                ) from None
            except _BrokenOffError as error:
                last = str(error)
            except httpx.TransportError as error:
                last = str(error) or type(error).__name__
            except httpx.RequestError as error:  # packed in another way than it says
                raise RemoteError(f"{self.url} answered what cannot be read: {error}.") from None
        raise RemoteError(f"Cannot reach {self.url}: {last}.")

    @staticmethod
    def _pause(attempt: int) -> None:
        if attempt > 0:
            time.sleep(_FIRST_PAUSE * 2 ** (attempt - 1))

    def parsed(self, message: str | bytes) -> dict[str, Any]:
        """Return the object that a message is as JSON. Raises RemoteError if it is none."""
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
    """Return the object that a message is as JSON; None if it is none."""
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
    except (ValueError, httpx.InvalidURL):  # no address, or a port that is no number
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port


def error_of(url: str, status: int, told: dict[str, Any]) -> Exception:
    """Return the error that an answer is."""
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
