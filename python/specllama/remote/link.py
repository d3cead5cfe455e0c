"""The connection to a server that verifies."""

from __future__ import annotations

import ipaddress
import json
import re
import time
from typing import Any
from urllib.parse import urlsplit

from specllama import _check
from specllama.errors import ArgumentError, QueueFullError, RemoteError
from specllama.remote.fields import Fields
from specllama.remote.lines import Lines

_ATTEMPTS = 6
_FIRST_PAUSE = 0.1
"""Seconds before the second attempt; they double before each further one."""
_FROM_PROXIES = (502, 503, 504)
"""HTTP status of a proxy that cannot reach the server, perhaps only for a moment."""
_NUMBERS = re.compile(rb"[0-9.]+")
_SHORT = 1.0
"""Maximum seconds for a request whose answer is not needed."""


class GoneError(RemoteError):
    """The server no longer has a generation, or has other tokens of it than the client."""


class NotFoundError(RemoteError):
    """The server does not have this path."""


class Link:
    """Sends requests to a server that has the target.

    If the connection fails, a request is repeated several times. This is safe: each round has a
    number, and the server keeps the answer of a round until the next one.

    Args:
        url: The server's address, e.g. "http://192.168.0.7:8080".
        key: The API key; None: none.
        timeout: Maximum seconds until an answer is complete.
        kind: The required kind of server, for error messages.

    Raises:
        ArgumentError: The URL cannot be used, or a package is missing.
    """

    def __init__(
        self, url: str, key: str | None, timeout: float, *, kind: str = "a specllama"
    ) -> None:
        try:
            from specllama.remote.transport import Transport
        except ImportError as error:
            raise ArgumentError(
                f"A remote target needs {error.name}; run: pip install 'specllama[remote]'"
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
        self._lines = Lines()
        self._is_deaf = False
        self._transport = Transport(self.url, self._headers, self._lines)

    def get(self, path: str) -> Fields:
        """Return the answer to a GET. Raises the errors of `post`."""
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Fields:
        """Return the answer to a POST.

        Raises:
            ArgumentError: The server refuses the request as invalid.
            QueueFullError: The server is busy, or this client has too many generations.
            GoneError: The generation of the request no longer exists.
            NotFoundError: The server does not have this path.
            RemoteError: The server cannot be reached, or failed.
            ClosedError: `hang_up` was called before or during the request.
        """
        return self._ask("POST", path, json.dumps(body, separators=(",", ":")).encode())

    def delete(self, path: str) -> None:
        """Ask the server to delete something; errors are ignored. After `hang_up` this still works
        until the server fails to answer once."""
        from specllama.remote.transport import BrokenOffError, TooLateError

        if self._is_deaf:
            return
        try:
            self._transport.request("DELETE", path, None, time.monotonic() + _SHORT)
        except (BrokenOffError, TooLateError, RemoteError):
            self._is_deaf = self._lines.hung_up

    def hang_up(self) -> None:
        """Abort all requests, and refuse new ones. Any thread may call this. A connection that is
        being opened is not aborted; that takes at most 10 s."""
        self._lines.hang_up()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Fields:
        from specllama.remote.transport import BrokenOffError, TooLateError

        deadline = time.monotonic() + self._timeout
        last = ""
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                reply = self._transport.request(method, path, body, deadline)
            except TooLateError:
                raise RemoteError(
                    f"{self.url} sent no complete answer in {self._timeout:g} s (target_timeout)."
                ) from None
            except BrokenOffError as error:
                last = str(error)
                continue
            if 200 <= reply.status < 300:
                return self.parsed(reply.body)
            fields = Fields.parse(self.url, reply.body)
            if fields is not None or reply.status not in _FROM_PROXIES:
                raise error_of(self.url, reply.status, fields or Fields(self.url, {}))
            last = f"HTTP status {reply.status}"
        raise RemoteError(f"Cannot reach {self.url}: {last}.")

    def _pause(self, attempt: int) -> None:
        self._lines.wait(_FIRST_PAUSE * 2 ** (attempt - 1) if attempt > 0 else 0)

    def parsed(self, message: str | bytes) -> Fields:
        """Return the JSON object in a message. Raises RemoteError if the message is not one."""
        fields = Fields.parse(self.url, message)
        if fields is None:
            raise RemoteError(f"{self.url} sent no JSON object; is it {self._kind} server?")
        return fields


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
        host = (parts.hostname or "").encode("idna")
        if _NUMBERS.fullmatch(host):
            ipaddress.IPv4Address(host.decode())
    except ValueError:  # not an address, or the port is not a number
        return False
    is_plain = url.isprintable() and not (parts.query or parts.fragment or "@" in parts.netloc)
    is_host = bool(host) and all(one > 0x20 for one in host)
    return parts.scheme in ("http", "https") and is_host and has_port and is_plain


def error_of(url: str, status: int, fields: Fields) -> Exception:
    """Return the exception for an answer that reports an error."""
    said = fields.message()
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
