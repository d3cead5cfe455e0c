"""Downloads images that requests name by URL.

A client could make the server send requests to machines that only the server can reach. So a host
name is resolved once, all its addresses must be public, and the connection uses one of these. If
the name resolves to another address later, that has no effect. Redirects are checked in the same
way.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpcore

from specllama.server.error import ApiError
from specllama.server.media.addresses import is_public
from specllama.server.media.image_url import ImageUrl

SECONDS = 20.0
"""Time limit from resolving the name to the last byte."""

MOST_BYTES = 20_000_000
_MOST_REDIRECTS = 3
_MOST_AT_ONCE = 16
_REDIRECTS = (301, 302, 303, 307, 308)


class RefusedAddressError(Exception):
    """A host name resolves to an address that is not public."""


class Downloads:
    """Downloads images, at most 16 at once."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self._context = ssl.create_default_context()

    async def images(self, fields: Mapping[str, str]) -> dict[str, bytes]:
        """Return the images at URLs.

        Args:
            fields: For each URL, the field that has it.

        Raises: the errors of `image`.
        """
        found = await asyncio.gather(*(self.image(field, url) for url, field in fields.items()))
        return dict(zip(fields, found, strict=True))

    async def image(self, field: str, url: str) -> bytes:
        """Return the image at a URL.

        Args:
            field: The field that has the URL.
            url: The URL.

        Raises:
            ApiError: The URL is refused or cannot be reached, or the image is too large or too
                slow.
        """
        try:
            return await asyncio.wait_for(self._image(field, ImageUrl.parse(field, url)), SECONDS)
        except asyncio.TimeoutError:
            why = f"took more than {SECONDS:.0f} s"
        except RefusedAddressError:
            why = "was refused: the address is not public"
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError):
            why = "failed: the host cannot be reached"
        raise ApiError(400, f"{field}: the download {why}; send the image as a data URL.",
                       param=field)  # fmt: skip

    async def _image(self, field: str, url: ImageUrl) -> bytes:
        async with self._room:
            for _ in range(_MOST_REDIRECTS + 1):
                found = await self._answer(field, url)
                if isinstance(found, bytes):
                    return found
                url = url.joined(field, found)
        raise ApiError(
            400, f"{field} redirects more than {_MOST_REDIRECTS} times; send the image as a data "
            "URL.", param=field,
        )  # fmt: skip

    async def _answer(self, field: str, url: ImageUrl) -> bytes | str:
        """Return the body at a URL, or the URL that it redirects to."""
        bracketed = f"[{url.host}]" if ":" in url.host else url.host
        is_default = url.port == (443 if url.scheme == "https" else 80)
        host = bracketed if is_default else f"{bracketed}:{url.port}"
        async with (
            httpcore.AsyncConnectionPool(
                network_backend=_PublicBackend(), ssl_context=self._context
            ) as pool,
            pool.stream(
                "GET",
                httpcore.URL(
                    scheme=url.scheme, host=url.host, port=url.port, target=url.target.encode()
                ),
                headers=[
                    ("Host", host), ("Accept", "image/*"), ("Accept-Encoding", "identity"),
                    ("User-Agent", "specllama"),
                ],
            ) as response,
        ):  # fmt: skip
            headers = {name.lower(): value for name, value in response.headers}
            if response.status in _REDIRECTS and b"location" in headers:
                return headers[b"location"].decode("latin-1")
            if response.status != 200:
                raise ApiError(
                    400, f"{field}: the host answers {response.status}; send the image as "
                    "a data URL.", param=field,
                )  # fmt: skip
            return await _body(field, response.aiter_stream())


async def _body(field: str, parts: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > MOST_BYTES:
            raise ApiError(
                400, f"{field}: the image has more than {MOST_BYTES} bytes.", param=field
            )
    return bytes(body)


async def looked_up(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host name. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


class _PublicBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await looked_up(host, port)
        if not addresses or not all(map(is_public, addresses)):
            raise RefusedAddressError
        return await self._inner.connect_tcp(addresses[0], port, timeout)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)
