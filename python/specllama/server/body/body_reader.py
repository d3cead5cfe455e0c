"""Reads the bodies of requests, and processes them in the pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from specllama.errors import SpecllamaError
from specllama.server.body.fields import Fields
from specllama.server.body.pool import Pool
from specllama.server.error import ApiError
from specllama.server.media.access import HeldMedia, MediaAccess, WantedImages

if TYPE_CHECKING:
    from specllama.server.media.download import Downloads

_READ_SECONDS = 60.0
_QUICK = 1 << 12
"""Bytes. Smaller bodies are parsed in the event loop, in less than a millisecond."""

_MOST_HELD = 256 << 20
"""Maximum bytes of all requests that are being read. Requests with images are large, and all
clients together must not fill the memory."""
_MOST_DRAINED = 64 << 20

T = TypeVar("T")


class BodyReader:
    """Reads the bodies of all requests of an application. They share a pool of threads.

    Args:
        max_body: Maximum bytes of a body.
        allow_image_urls: Whether the server downloads images that requests name by URL.
    """

    def __init__(self, max_body: int, *, allow_image_urls: bool = False) -> None:
        self._max_body = max_body
        self._allow_image_urls = allow_image_urls
        self._held_media = HeldMedia()
        self._n_held = 0
        self._pool = Pool()

    @cached_property
    def _downloads(self) -> Downloads:
        from specllama.server.media.download import Downloads

        return Downloads()

    async def fields(self, request: Request) -> Fields:
        """Return the fields of a request's body. Raises ApiError."""
        return await self.parsed(request, await self.body(request))

    async def parsed(self, request: Request, body: bytes) -> Fields:
        """Return the fields of a body that has been read. Raises ApiError."""
        if len(body) <= _QUICK:
            return Fields.parse(body)
        return await self.run(request, lambda: Fields.parse(body), len(body))

    async def read(self, request: Request, work: Callable[[Fields], T]) -> T:
        """Call a function with the fields of a request's body and return its result. It runs in the
        pool and is stopped if it takes too long or if the client disconnects; see `Pool.run`. If it
        raises WantedImages, these are downloaded and it runs again.

        Raises:
            ApiError: The function raised it, or a SpecllamaError; or it took too long; or an image
                could not be downloaded.
        """
        body = await self.body(request)
        downloaded: dict[str, bytes] = {}
        media = MediaAccess(self._held_media, downloaded if self._allow_image_urls else None)

        def make() -> T:
            fields = Fields.parse(body)
            fields.media = media
            return reported(lambda: work(fields), fields.given)

        with self._holding(len(body)):
            try:
                return await self.run(request, make, len(body))
            except WantedImages as wanted:
                downloaded.update(await self._downloads.images(wanted.fields))
            n_bytes = sum(map(len, downloaded.values()))
            with self._holding(n_bytes):
                return await self.run(request, make, len(body) + n_bytes)

    async def run(self, request: Request, work: Callable[[], T], n_bytes: int) -> T:
        """Run a function in the pool and return its result. It is stopped if this task is cancelled
        or if the client disconnects.

        Args:
            request: The request.
            work: The function; see `Pool.run`.
            n_bytes: Size of the request.

        Raises:
            ApiError: It took too long, or the client disconnected.
            BaseException: The function raised it.
        """
        working = asyncio.ensure_future(self._pool.run(work, client_of(request), n_bytes))
        awaited: set[asyncio.Future[Any]] = {working, asyncio.ensure_future(_leaving(request))}
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise _broken_off()
        finally:
            for one in awaited:
                one.cancel()
            del working, awaited, one  # an error's traceback refers to this frame

    async def body(self, request: Request) -> bytes:
        """Return the body of a request. Raises ApiError if it is too long or arrives too slowly.

        A body that is too long is read to its end, up to a bound. Otherwise its sender would not
        get the error.
        """
        body = bytearray()
        n_bytes = 0

        async def read() -> None:
            nonlocal n_bytes
            with ExitStack() as held:
                async for part in request.stream():
                    n_bytes += len(part)
                    if n_bytes <= self._max_body:
                        held.enter_context(self._holding(len(part)))
                        body.extend(part)
                    elif n_bytes > self._max_body + min(63 * self._max_body, _MOST_DRAINED):
                        return

        try:
            await asyncio.wait_for(read(), _READ_SECONDS)
        except ClientDisconnect:
            raise _broken_off() from None
        except asyncio.TimeoutError:
            raise ApiError(
                408, f"The request took more than {_READ_SECONDS:.0f} s to arrive."
            ) from None
        if n_bytes > self._max_body:
            raise ApiError(413, f"The request has more than {self._max_body} bytes; shorten it.")
        if request.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
            raise ApiError(415, "The body is compressed; send it uncompressed.")
        return bytes(body)

    @contextmanager
    def _holding(self, n_bytes: int) -> Iterator[None]:
        """Count bytes of a request that are in memory. Raises ApiError if there are too many."""
        if self._n_held + n_bytes > _MOST_HELD + self._max_body:
            raise ApiError(
                503, "The server is busy with large requests; try again later.",
                code="server_overloaded",
            )  # fmt: skip
        self._n_held += n_bytes
        try:
            yield
        finally:
            self._n_held -= n_bytes


def reported(work: Callable[[], T], names: Collection[str]) -> T:
    """Return what a function returns. Raises ApiError if it raises SpecllamaError.

    Args:
        work: The function.
        names: The fields of the request, of which one may be invalid.
    """
    try:
        return work()
    except SpecllamaError as error:
        raise ApiError.of(error, names) from None


def client_of(request: Request) -> str:
    """Return the client's address. It identifies the client, because clients may share a key."""
    return request.client.host if request.client else ""


def _broken_off() -> ApiError:
    return ApiError(400, "The client disconnected before its request was read.")


async def _leaving(request: Request) -> Any:
    while (await request.receive())["type"] != "http.disconnect":
        pass
