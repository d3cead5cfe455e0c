"""Checks who may use the server."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from specllama.server.error import ApiError
from specllama.server.page import PREFIX
from specllama.server.settings import LOOPBACK, Settings

_OPEN = frozenset({"/", "/health", "/v1/health"})
"""Paths served without the key, besides the parts of the page."""


class Guard:
    """Lets requests through that carry a key, if there are any, and are not from a foreign web
    page.

    A page on another site can make its visitor's browser send requests to this machine. With a DNS
    name of its own that points here, it can even read the answers. So a request from a page must
    come from the server's own or a named origin, and a server without a key on a loopback address
    answers only requests whose host is a loopback name.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._only_loopback = not settings.api_keys and settings.host in LOOPBACK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            try:
                self._check(scope["path"], Headers(scope=scope))
            except ApiError as error:
                if scope["type"] == "http":
                    await error.response(scope)(scope, receive, send)
                else:
                    await send({"type": "websocket.close", "code": 1008, "reason": str(error)})
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._only_loopback and _split(f"//{host}").hostname not in LOOPBACK:
            raise ApiError(
                403, f"The host {host!r:.80} is not this machine; start the server with an API key."
            )
        if (
            origin is not None
            and _split(origin).netloc != host
            and not {origin, "*"} & set(self._settings.cors_origins)
        ):
            raise ApiError(
                403, f"Pages of {origin:.80} may not use this server; see --cors-origin."
            )
        if self._settings.api_keys and not (path in _OPEN or path.startswith(PREFIX)):
            given = [one.encode("latin-1") for one in _keys(headers)]
            known = [key.encode() for key in self._settings.api_keys]
            if not any(hmac.compare_digest(one, key) for one in given for key in known):
                raise ApiError(401, "The API key is missing or wrong.", code="invalid_api_key")


def _keys(headers: Headers) -> Iterator[str]:
    """Yield the keys that a request carries. A proxy may need `Authorization` for itself."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield key
    yield headers.get("x-api-key", "")


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # for example an unclosed bracket
        raise ApiError(400, f"{address!r:.80} is no address.") from None
