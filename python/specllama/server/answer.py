"""An answer on its way to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from specllama import Handle, SpecllamaError
from specllama.server.call import Call, encoded
from specllama.server.error import ApiError


class Answer:
    """Sends what becomes of a call, as a whole or in parts, and ends its generations when the
    client is gone. An ASGI application for one request whose body has been read.

    Args:
        call: The call.
        handles: Its generations: the choices for the first prompt first.
        timeout: Most seconds that it may take.
    """

    def __init__(self, call: Call, handles: Sequence[Handle], timeout: float) -> None:
        self._call = call
        self._handles = handles
        self._timeout = timeout
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the client has it all, or is gone."""
        return self._ended

    def cancel(self) -> None:
        """End the generations; the client gets what there is, if it is still there."""
        for handle in reversed(self._handles):  # so that none begins in the place of another
            handle.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(scope, receive, send))
        gone = asyncio.ensure_future(_disconnect(receive))
        timer = asyncio.get_running_loop().call_later(self._timeout, self.cancel)
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
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
            if not self._call.streams:
                whole = encoded(await self._call.whole(self._handles))
                await Response(whole, media_type="application/json")(scope, receive, send)
                return
            async with aclosing(self._call.events(self._handles)) as events:
                # What is wrong with a request shows when it begins: then there is still a status.
                event = await anext(events)
                headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                while event:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                    event = await anext(events, b"")
                await send({"type": "http.response.body", "body": b""})
        except SpecllamaError as error:
            await ApiError.of(error, self._call.given).response()(scope, receive, send)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
