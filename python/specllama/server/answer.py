"""An answer on its way to the client."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from specllama import Chunk, Generation, Handle, SpecllamaError
from specllama.server.call import Call
from specllama.server.error import ApiError
from specllama.server.settings import Settings


class Answer:
    """Sends what becomes of a call, as a whole or in parts, and ends its generations when the
    client is gone. An ASGI application for one request whose body has been read.

    Args:
        call: The call.
        handles: Its generations: the choices for the first prompt first.
        settings: The model's name, and how long it may take.
    """

    def __init__(self, call: Call, handles: Sequence[Handle], settings: Settings) -> None:
        self._call = call
        self._handles = handles
        self._head = {
            "id": call.id_prefix + secrets.token_hex(12),
            "object": call.chunk_kind if call.streams else call.kind,
            "created": int(time.time()),
            "model": settings.name,
        }
        self._timeout = settings.timeout

    def cancel(self) -> None:
        """End the generations; the client gets what there is, if it is still there."""
        for handle in self._handles:
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
            timer.cancel()
            self.cancel()
            sending.cancel()
            gone.cancel()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if not self._call.streams:
                await JSONResponse(await self._whole())(scope, receive, send)
                return
            async with aclosing(self._events()) as events:
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

    async def _whole(self) -> dict[str, Any]:
        generations = [await handle for handle in self._handles]
        choices = [
            {
                "index": i,
                **self._call.choice(one),
                **self._call.trace(one),
                "finish_reason": _reason(one),
            }
            for i, one in enumerate(generations)
        ]
        return {**self._head, "choices": choices, "usage": self._call.usage(generations)}

    async def _events(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events, at least one, as many at once as there are."""
        begun: set[int] = set()
        try:
            async for index, chunks in _merged(self._handles):
                events = b""
                if index not in begun:
                    begun.add(index)
                    if (beginning := self._call.beginning(index)) is not None:
                        events += self._event(index, beginning)
                for chunk in chunks:
                    drafted = {"from_draft": True} if chunk.from_draft else {}
                    events += self._event(index, self._call.part(chunk) | drafted)
                if not chunks:
                    ended = await self._handles[index]
                    ending = self._call.ending() | self._call.trace(ended)
                    events += self._event(index, ending, _reason(ended))
                yield events
        except SpecllamaError as error:
            if not begun:
                raise
            yield _data(ApiError.of(error).body)
            return
        if self._call.include_usage:
            usage = self._call.usage([await handle for handle in self._handles])
            yield _data({**self._head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _event(self, index: int, choice: dict[str, Any], reason: str | None = None) -> bytes:
        return _data(
            {**self._head, "choices": [{"index": index, **choice, "finish_reason": reason}]}
        )


def _data(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


def _reason(generation: Generation) -> str:
    """Return why a generation ended; one that took too long was cut to a length, too."""
    return generation.finish_reason or "length"


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _merged(handles: Sequence[Handle]) -> AsyncGenerator[tuple[int, list[Chunk]], None]:
    """Yield (index of a handle, its next chunks) in the order in which they come; no chunks are the
    end of that one."""
    waiting = {asyncio.ensure_future(one.next_chunks()): i for i, one in enumerate(handles)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                index = waiting.pop(task)
                chunks = task.result()
                if chunks:
                    waiting[asyncio.ensure_future(handles[index].next_chunks())] = index
                yield index, chunks
    finally:
        for task in waiting:
            task.cancel()
