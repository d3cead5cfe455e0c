"""Generations, one after the other over a connection, that do not wait for the client's drafts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from specllama import ClosedError, Handle, SpecllamaError
from specllama.formats.wire import MOST_TOLD
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.settings import Settings
from specllama.server.verify.offered import Offered
from specllama.server.verify.opening import Opening, names_of
from specllama.server.verify.verification import answer

Host = Callable[[Fields], Awaitable[tuple[Opening, Handle]]]
"""A function that begins a generation. Raises ApiError."""

Parse = Callable[[bytes], Awaitable[Fields]]
"""A function that reads a message and keeps nobody waiting. Raises ApiError."""


class AheadSocket:
    """A connection over which generations run without waiting for drafts.

    The client sends a message that opens a generation, is told every round, and sends drafts
    meanwhile; after its end it may open the next. A draft that comes while no generation is open
    came too late, and is dropped. A message that cannot be understood ends the connection, and so
    does a pause of `Settings.idle` seconds between two generations. The end of the connection ends
    the generation.

    Args:
        socket: The connection.
        settings: The server's settings.
        parse: Reads a message.
        host: Begins a generation.

    Attributes:
        busy: Whether a generation was asked for and has not ended.
    """

    def __init__(self, socket: WebSocket, settings: Settings, parse: Parse, host: Host) -> None:
        self._socket = socket
        self._settings = settings
        self._parse = parse
        self._host = host
        self._handle: Handle | None = None
        self.busy = False
        self._is_first = True
        # Fields that open a generation; an error in a message; None: the client is gone.
        self._openings: asyncio.Queue[Fields | ApiError | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Serve the connection to its end."""
        await self._socket.accept()
        hearing = asyncio.ensure_future(self._hear())
        try:
            while (opening := await self._next_opening()) is not None:
                await self._generate(opening)
            await self._socket.close()
        except ApiError as error:
            await refuse(self._socket, error)
        except (WebSocketDisconnect, RuntimeError):
            pass  # the client is gone
        finally:
            hearing.cancel()

    def cancel(self) -> None:
        """End the running generation, if there is one."""
        if self._handle is not None:
            self._handle.cancel()

    async def _next_opening(self) -> Fields | None:
        try:
            opening = await asyncio.wait_for(self._openings.get(), self._settings.idle)
        except asyncio.TimeoutError:
            return None
        if isinstance(opening, ApiError):
            raise opening
        return opening

    async def _generate(self, fields: Fields) -> None:
        opening, handle = await self._host(fields)
        self._handle = handle
        if not self._openings.empty():  # the client is gone, or sent nonsense
            handle.cancel()
        timer = asyncio.get_running_loop().call_later(self._settings.timeout, handle.cancel)
        try:
            await self._tell_rounds(handle, told(opening))
        except SpecllamaError as error:
            if not self._openings.empty():
                return  # the client is why it was cancelled
            if isinstance(error, ClosedError):
                raise gone() from None
            raise ApiError.of(error, names_of(fields)) from None
        finally:
            timer.cancel()
            handle.cancel()
            self._handle = None

    async def _tell_rounds(self, handle: Handle, head: dict[str, Any]) -> None:
        while rounds := await handle.next_rounds():
            news = {**head, **await answer(handle, rounds)}
            head = {}
            if rounds[-1].done:
                self._handle, self.busy = None, False  # before telling: then it may open one
            await self._socket.send_json(news)
            if rounds[-1].done:
                return

    async def _hear(self) -> None:
        """Take messages until the client is gone, or until one cannot be understood."""
        try:
            while True:
                body = await _receive(self._socket, self._settings.max_body)
                self._take(await self._parse(body))
                await asyncio.sleep(0)  # others' turn, also if the next message is there already
        except ApiError as error:
            self._openings.put_nowait(error)
        except (WebSocketDisconnect, RuntimeError):
            self._openings.put_nowait(None)
        self.cancel()

    def _take(self, fields: Fields) -> None:
        if self.busy and "prompt" in fields:
            raise ApiError(400, "A generation is at work on this connection; wait for its end.")
        if self._handle is not None:
            _take_draft(fields, self._handle)
        elif not self.busy and (self._is_first or "n_before" not in fields):
            self.busy, self._is_first = True, False
            self._openings.put_nowait(fields)


def told(opening: Opening) -> dict[str, Any]:
    """Return the prompt's token ids for a client that sent a text; nothing for others."""
    return {"prompt": opening.prompt} if opening.was_text else {}


def gone() -> ApiError:
    """Return the error for a generation that no longer exists."""
    return ApiError(410, "There is no such generation any more; open it again.", code="gone")


async def refuse(socket: WebSocket, error: ApiError) -> None:
    """Send an error, and close the connection."""
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_json({**error.body, "status": error.status})
        await socket.close(1008)


def _take_draft(fields: Fields, handle: Handle) -> None:
    n_before = fields.integer("n_before", low=0, high=2**31 - 1)
    fields.required("n_before")
    assert n_before is not None
    draft = Offered(fields, MOST_TOLD)
    confidence = fields.any("confidence") if "confidence" in fields else []
    if not isinstance(confidence, list):
        fields.refuse("confidence", "a list of numbers")
    try:
        draft.leave(handle, n_before, confidence)
    except SpecllamaError as error:
        raise ApiError.of(error, fields.given) from None


async def _receive(socket: WebSocket, max_bytes: int) -> bytes:
    """Return a message, text or bytes. Raises WebSocketDisconnect; ApiError if it is too long."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    body = message.get("bytes") or (message.get("text") or "").encode(errors="surrogatepass")
    if len(body) > max_bytes:
        raise ApiError(413, f"A message has {max_bytes} bytes at most.")
    return bytes(body)
