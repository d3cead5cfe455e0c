"""Sends answers to clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from specllama import Handle, SpecllamaError
from specllama.server.endpoint import Endpoint
from specllama.server.error import ApiError, encoded

_SILENCE = 10.0
"""Seconds without a token after which a waiting client gets a sign of life, repeatedly. Proxies and
HTTP libraries close silent connections."""

_TO_READ = 150.0
"""Seconds after the timeout that a client has to read the rest of its answer."""


class Answer:
    """Sends the answer to a request, whole or in parts, and ends its generations when the client
    disconnects. It is an ASGI application for one request whose body has been read.

    Args:
        endpoint: The request.
        handles: The request's generations, all choices for the first prompt first.
        timeout: Maximum seconds that the answer may take.
    """

    def __init__(self, endpoint: Endpoint, handles: Sequence[Handle], timeout: float) -> None:
        self._endpoint = endpoint
        self._handles = handles
        self._timeout = timeout
        self._begun = False
        self._ended = False

    @property
    def id(self) -> str:
        """The id in the answer; "" if it has none."""
        return self._endpoint.id

    @property
    def ended(self) -> bool:
        """Whether the answer was sent, or the client disconnected."""
        return self._ended

    def cancel(self) -> None:
        """End the generations. A client that is still connected gets the text generated so far."""
        for handle in reversed(self._handles):  # queued ones first, so that none starts
            handle.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(scope, receive, send))
        gone = asyncio.ensure_future(disconnected(receive))
        timer = asyncio.get_running_loop().call_later(self._timeout, self.cancel)
        try:
            await asyncio.wait(
                {sending, gone},
                timeout=self._timeout + _TO_READ,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if sending.done():
                sending.result()
        finally:
            self._ended = True
            timer.cancel()
            self.cancel()
            sending.cancel()
            gone.cancel()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if not self._endpoint.streams:
                whole = encoded(await self._endpoint.whole(self._handles))
                await Response(whole, media_type="application/json")(scope, receive, send)
                return
            async with aclosing(self._endpoint.events(self._handles)) as events:
                part = await self._first(events, send)
                while part:
                    await self._send_part(part, send)
                    part = await anext(events, b"")
        except SpecllamaError as error:
            refusal = ApiError.of(error, self._endpoint.given)
            if not self._begun:
                await refusal.response(scope)(scope, receive, send)
                return
            refusal.note(scope)
            await self._send_part(self._endpoint.failure(refusal), send)
        await send({"type": "http.response.body", "body": b""})

    async def _first(self, events: AsyncGenerator[bytes, None], send: Send) -> bytes:
        """Return the first event. An invalid request fails when it begins. Its error is then sent
        as an HTTP status, unless a sign of life was sent before."""
        first = asyncio.ensure_future(anext(events))
        awaited: set[asyncio.Future[Any]] = {first}
        try:
            while not first.done():
                if self._endpoint.shows_progress and awaited == {first}:
                    awaited |= {asyncio.ensure_future(self._endpoint.watches[0].wait())}
                done, _ = await asyncio.wait(
                    awaited, timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await self._send_part(self._endpoint.sign_of_life, send)
                if progress := self._endpoint.progress():
                    await self._send_part(progress, send)
                awaited -= done - {first}
        finally:
            left = [one for one in awaited if not one.done()]
            for one in left:  # the generator must be idle before it is closed
                one.cancel()
            if left:
                await asyncio.wait(left)
        return first.result()

    async def _send_part(self, part: bytes, send: Send) -> None:
        if not self._begun:
            self._begun = True
            kind = self._endpoint.media_type.encode()
            headers = [(b"content-type", kind), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": part, "more_body": True})


async def disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
