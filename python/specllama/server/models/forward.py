"""Forwards a request to a model's server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import Receive, Scope, Send

from specllama.server.answer import disconnected
from specllama.server.error import ApiError
from specllama.server.models.child import GONE, Child, Headers
from specllama.server.models.loaded_models import LoadedModels
from specllama.server.models.served_model import ServedModel

_NOT_SENT = frozenset({
    b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
    b"host", b"content-length", b"authorization", b"x-api-key", b"origin", b"cookie",
    b"x-forwarded-for", b"x-forwarded-proto", b"proxy-authorization", b"proxy-connection",
})  # fmt: skip
"""Headers of a request that are for this server, or that it has checked."""

_NOT_RETURNED = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"date", b"server"})
"""Headers of an answer that this server writes itself."""


class Forward:
    """Forwards a request to a model's server when the model is loaded, and returns the answer as it
    arrives. If the client disconnects, its place is free and its generation ends. It is an ASGI
    application for one request whose body has been read.

    Args:
        models: The models.
        model: The model that answers.
        body: The request's body.
        target: Path and query at the model's server.
        timeout: Maximum seconds that the request may wait for the model.
    """

    def __init__(
        self,
        models: LoadedModels,
        model: ServedModel,
        body: bytes,
        target: bytes,
        timeout: float,
    ) -> None:
        self._models = models
        self._model = model
        self._body = body
        self._target = target
        self._timeout = timeout
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(scope, send))
        gone = asyncio.ensure_future(disconnected(receive))
        timer = asyncio.get_running_loop().call_later(self._timeout, self._give_up, sending)
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not sending.cancelled():
                sending.result()
            elif sending.done():
                raise ApiError(
                    503, f"The model {self._model.name!r:.80} takes too long to load; try again "
                    "later.", code="server_overloaded",
                )  # fmt: skip
        finally:
            timer.cancel()
            gone.cancel()
            sending.cancel()
            # Its connection must be closed before another request gets its place.
            await asyncio.gather(sending, return_exceptions=True)

    def _give_up(self, sending: asyncio.Future[None]) -> None:
        if not self._begun:
            sending.cancel()

    async def _send(self, scope: Scope, send: Send) -> None:
        async with self._models.using(self._model) as child:
            self._begun = True
            try:
                await self._answer(child, scope, send)
            except GONE:
                raise self._broken() from None

    async def _answer(self, child: Child, scope: Scope, send: Send) -> None:
        headers = _sent(scope)
        async with child.stream(scope["method"], self._target, headers, self._body) as answer:
            back = [(name, value) for name, value in answer.headers
                    if name.lower() not in _NOT_RETURNED]  # fmt: skip
            await send({"type": "http.response.start", "status": answer.status, "headers": back})
            try:
                async for part in answer.aiter_stream():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            except GONE:
                error = self._broken()
                error.note(scope)
                kind = next((value for name, value in back if name.lower() == b"content-type"), b"")
                if (report := error.in_stream(scope, kind)) is None:
                    return  # uvicorn closes the connection, because the answer is not complete
                await send({"type": "http.response.body", "body": report, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _broken(self) -> ApiError:
        return ApiError(
            503, f"The process of the model {self._model.name!r:.80} has ended; try again.",
            code="request_ended",
        )  # fmt: skip


def _sent(scope: Scope) -> Headers:
    """Return the headers to forward. They name the client, because the model's server shares its
    work fairly among clients."""
    headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
    client = scope.get("client")
    kept = [(name, value) for name, value in headers if name.lower() not in _NOT_SENT]
    return [*kept, (b"X-Forwarded-For", client[0].encode())] if client else kept
