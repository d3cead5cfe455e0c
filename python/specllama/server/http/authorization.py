"""Checks that a client may use the server."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from specllama.server.error import ApiError
from specllama.server.http.request_log import state_of
from specllama.server.page import PREFIX
from specllama.server.settings import Settings

_OPEN = frozenset({"/", "/health", "/v1/health"})
"""Paths served without a key, in addition to the parts of the page."""


def owner_of(scope: Scope) -> int:
    """Return the owner of an authorised request: the index of its key; 0 if the server has no
    keys."""
    owner: int = state_of(scope)["owner"]
    return owner


class Authorization:
    """Accepts requests that carry a key, if the server has keys, and that do not come from a
    foreign web page.

    A page on another site can make its visitor's browser send requests to this machine. If the
    site's DNS name points to this machine, the page can even read the answers (DNS rebinding). So a
    page's request must come from the server's own origin or an allowed one. And a server without
    keys answers only requests whose host is an IP address, localhost, a name under .localhost, or
    the name that it listens at: a foreign site cannot have these names.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                state_of(scope)["owner"] = self._check(scope["path"], Headers(scope=scope))
            except ApiError as error:
                await error.response(scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> int:
        """Return the index of the key that a request carries; 0 if it needs none. Raises
        ApiError."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not (self._settings.api_keys or self._is_own(_split(f"//{host}").hostname or "")):
            raise ApiError(
                403,
                f"The host {host!r:.80} is not a name of this server; use its IP address, or start "
                "it with --host and that name, or with an API key.",
            )
        if (
            origin is not None
            and _split(origin).netloc != host
            and not {origin, "*"} & set(self._settings.cors_origins)
        ):
            raise ApiError(
                403, f"Pages of {origin:.80} may not use this server; see --cors-origin."
            )
        if not self._settings.api_keys or path in _OPEN or path.startswith(PREFIX):
            return 0
        given = [one.encode("latin-1") for one in _keys(headers)]
        known = [key.encode() for key in self._settings.api_keys]
        fitting = [any(hmac.compare_digest(one, key) for one in given) for key in known]
        if not any(fitting):
            raise ApiError(401, "The API key is missing or wrong.", code="invalid_api_key")
        return fitting.index(True)

    def _is_own(self, name: str) -> bool:
        """Whether a host's name, in lower case, can only be this server's."""
        if name in ("localhost", self._settings.host.lower()):
            return name != ""
        return name.endswith(".localhost") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _keys(headers: Headers) -> Iterator[str]:
    """Yield the keys of a request. X-Api-Key counts too, because a proxy may need `Authorization`
    for itself."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield key
    yield headers.get("x-api-key", "")


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # for example an unclosed bracket
        raise ApiError(400, f"{address!r:.80} is not a valid address.") from None
