"""The paths of /v1/verify."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from specllama import ClosedError, Handle, SpecllamaError, SpecSession
from specllama.formats.wire import MOST_DRAFTED
from specllama.server.error import ApiError
from specllama.server.fields import Fields, read_body
from specllama.server.settings import Settings
from specllama.server.verify.opening import Opening, draft_of, names_of
from specllama.server.verify.verification import Verification, answer

_MOST_OPEN = 64
"""Generations that may wait for their drafts at once."""


class Verify:
    """A target for those who draft elsewhere.

    A GET tells what it is. A POST opens a generation and answers with its first token; a POST to
    that one's path verifies a draft, and a DELETE ends it. A WebSocket at `ahead` is told every
    round as it comes, and takes drafts meanwhile.

    Args:
        session: The session, open with offers=True.
        settings: What is allowed.
        began: Called with each generation.
    """

    def __init__(
        self, session: SpecSession, settings: Settings, began: Callable[[Handle], object]
    ) -> None:
        self._session = session
        self._settings = settings
        self._began = began
        self._open: dict[str, Verification] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._calls: Counter[str] = Counter()
        self._ahead: set[Handle] = set()

    @property
    def routes(self) -> list[BaseRoute]:
        """The paths."""
        return [
            Route("/v1/verify", self._describe),
            Route("/v1/verify", self._begin, methods=["POST"]),
            WebSocketRoute("/v1/verify/ahead", self._go_ahead),
            Route("/v1/verify/{id}", self._round, methods=["POST"]),
            Route("/v1/verify/{id}", self._end, methods=["DELETE"]),
        ]

    def end_all(self) -> None:
        """End what is open; its clients may begin it again elsewhere."""
        for name in list(self._open):
            self._forget(name)
        for handle in list(self._ahead):
            handle.cancel()

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._description))

    def _description(self) -> dict[str, Any]:
        session, core = self._session, self._session.core
        return {
            "model": self._settings.name,
            "description": session.model_description,
            "kernels": session.cpu_kernels,
            "n_ctx": session.n_ctx,
            "n_vocab": session.n_vocab,
            "n_threads": session.n_threads,
            # As a text: JSON's numbers are not sure to have 64 bits.
            "vocabulary": f"{core.vocabulary:016x}",
            "bos": core.bos,
            "eos": core.eos,
            "fim": core.fim,
            "chat_template": core.chat_template,
            "decode_seconds": core.decode_seconds(),
        }

    async def _begin(self, request: Request) -> Response:
        fields = Fields.parse(await read_body(request, self._settings.max_body))
        self._drop_finished()
        if len(self._open) >= _MOST_OPEN:
            raise ApiError(503, "Too many generations are open here.", code="server_overloaded")
        opening, handle = await self._host(fields, paced=True)
        name = secrets.token_hex(12)
        one = self._open[name] = Verification(opening, handle)
        return JSONResponse(
            {"id": name, **_told(opening), **await self._answer(name, one.first, fields)}
        )

    async def _host(self, fields: Fields, *, paced: bool) -> tuple[Opening, Handle]:
        def host() -> tuple[Opening, Handle]:
            opening = Opening(self._session, fields, self._settings)
            return opening, opening.host(paced=paced)

        try:
            opening, handle = await run_in_threadpool(host)
        except SpecllamaError as error:
            raise ApiError.of(error, names_of(fields)) from None
        self._began(handle)
        return opening, handle

    async def _round(self, request: Request) -> Response:
        fields = Fields.parse(await read_body(request, self._settings.max_body))
        name = request.path_params["id"]
        one = self._open.get(name)
        if one is None:
            raise _gone()
        return JSONResponse(await self._answer(name, lambda: one.round(fields), fields))

    async def _answer(self, name: str, round_: Callable[[], Any], fields: Fields) -> dict[str, Any]:
        one = self._open[name]
        # Nobody's time is up while he waits for the server.
        self._calls[name] += 1
        if timer := self._timers.pop(name, None):
            timer.cancel()
        try:
            told: dict[str, Any] = await round_()
        except SpecllamaError as error:
            if one.over:  # what is wrong with a draft alone ends nothing
                self._forget(name)
            if isinstance(error, ClosedError):
                raise _gone() from None
            raise ApiError.of(error, names_of(fields)) from None
        finally:
            self._calls[name] -= 1
            if self._calls[name] == 0:
                del self._calls[name]
                self._count_idle(name)
        return told

    def _drop_finished(self) -> None:
        """Make room: the last answers of generations that are over are kept while there is."""
        for name in [name for name, one in self._open.items() if one.over]:
            if len(self._open) < _MOST_OPEN:
                return
            self._forget(name)

    async def _end(self, request: Request) -> Response:
        self._forget(request.path_params["id"])
        return Response(status_code=204)

    def _count_idle(self, name: str) -> None:
        """Count its idle time from now."""
        if name not in self._open:
            return
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(self._settings.idle, self._forget, name)

    def _forget(self, name: str) -> None:
        if one := self._open.pop(name, None):
            one.end()
        if timer := self._timers.pop(name, None):
            timer.cancel()

    async def _go_ahead(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            fields = Fields.parse(await _receive(socket, self._settings.max_body))
            opening, handle = await self._host(fields, paced=False)
        except ApiError as error:
            await _refuse(socket, error)
            return
        except WebSocketDisconnect:
            return
        self._ahead.add(handle)
        timer = asyncio.get_running_loop().call_later(self._settings.timeout, handle.cancel)
        hearing = asyncio.ensure_future(self._hear(socket, handle))
        try:
            # A client that is gone ends its generation.
            hearing.add_done_callback(lambda _: handle.cancel())
            head = _told(opening)
            while rounds := await handle.next_rounds():
                await socket.send_json({**head, **await answer(handle, rounds)})
                head = {}
                if rounds[-1].done:
                    break
            await socket.close()
        except SpecllamaError as error:
            closed = isinstance(error, ClosedError)
            await _refuse(socket, _gone() if closed else ApiError.of(error, names_of(fields)))
        except (WebSocketDisconnect, RuntimeError):
            pass  # it is gone
        finally:
            timer.cancel()
            handle.cancel()
            hearing.cancel()
            self._ahead.discard(handle)

    async def _hear(self, socket: WebSocket, handle: Handle) -> None:
        """Take drafts until the client is gone, or says what cannot be understood."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                try:
                    fields = Fields.parse(await _receive(socket, self._settings.max_body))
                    _take_draft(fields, handle)
                except ApiError as error:
                    await _refuse(socket, error)
                    return


def _told(opening: Opening) -> dict[str, Any]:
    """Return what a client that sent a text does not know."""
    return {"prompt": opening.prompt} if opening.was_text else {}


def _take_draft(fields: Fields, handle: Handle) -> None:
    n_before = fields.integer("n_before", low=0, high=2**31 - 1)
    fields.required("n_before")
    assert n_before is not None
    draft = draft_of(fields)
    if len(draft) > 4 * MOST_DRAFTED:
        raise ApiError(400, f"A draft has {4 * MOST_DRAFTED} tokens at most.", param="draft")
    confidence = fields.any("confidence") or []
    if not isinstance(confidence, list):
        fields.refuse("confidence", "a list of numbers")
    try:
        handle.offer(n_before, draft, confidence)
    except SpecllamaError as error:
        raise ApiError.of(error, fields.names) from None


async def _receive(socket: WebSocket, max_bytes: int) -> bytes:
    """Return a message, text or bytes. Raises WebSocketDisconnect, and ApiError for a long one."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    body = message.get("bytes") or (message.get("text") or "").encode(errors="surrogatepass")
    if len(body) > max_bytes:
        raise ApiError(413, f"A message has {max_bytes} bytes at most.")
    return bytes(body)


async def _refuse(socket: WebSocket, error: ApiError) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_json({**error.body, "status": error.status})
        await socket.close(1008)


def _gone() -> ApiError:
    return ApiError(410, "There is no such generation any more; open it again.", code="gone")
