"""The paths of /v1/verify."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from specllama import ClosedError, SpecllamaError, SpecSession
from specllama.model.loaded_model import backend_of
from specllama.requests.queued_request import QueuedRequest
from specllama.server.body.body_reader import BodyReader, client_of, reported
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.metrics import Metrics
from specllama.server.settings import Settings
from specllama.server.verify.opening import Opening, names_of
from specllama.server.verify.places import Places
from specllama.server.verify.verification import Verification

_MOST_OPEN = 64
"""Maximum number of open generations, of all clients."""
_MOST_EACH = 32
"""Maximum number of generations of a client."""
_LONGEST_NAME = 64


class Verify:
    """A target for remote clients that draft.

    A GET describes the target. A POST opens a generation and returns its first token. A POST to
    that generation's path verifies a draft, and a DELETE ends it.

    Args:
        session: The session, opened with verifies=True.
        settings: The server's settings.
        body_reader: Reads the requests.
        metrics: The server's metrics.
    """

    def __init__(
        self,
        session: SpecSession,
        settings: Settings,
        body_reader: BodyReader,
        metrics: Metrics,
    ) -> None:
        self._session = session
        self._settings = settings
        self._body_reader = body_reader
        self._metrics = metrics
        self._places = Places(session.n_seq)
        self._open: dict[str, Verification] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._calls: Counter[str] = Counter()
        self._named: dict[str, str] = {}  # ids, by the clients' names
        self._beginning: list[str] = []  # clients of those not yet in _open

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes of these paths."""
        return [
            Route("/v1/verify", self._describe),
            Route("/v1/verify/vocabulary", self._show_vocabulary),
            Route("/v1/verify", self._begin, methods=["POST"]),
            Route("/v1/verify/{id}", self._round, methods=["POST"]),
            Route("/v1/verify/{id}", self._end, methods=["DELETE"]),
        ]

    def end_all(self) -> None:
        """End all open generations. Their clients may restart them on another server."""
        for name in list(self._open):
            self._forget(name)

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._description))

    def _description(self) -> dict[str, Any]:
        session, core = self._session, backend_of(self._session)
        return {
            "model": self._settings.name,
            "description": session.model_description,
            "kernels": session.cpu_kernels,
            "n_ctx": session.n_ctx,
            "n_vocab": session.n_vocab,
            "n_threads": session.n_threads,
            # As text, because some JSON readers do not keep all 64 bits of a number.
            "vocabulary": f"{core.vocabulary:016x}",
            "bos": core.bos,
            "eos": core.eos,
            "fim": core.fim,
            "chat_template": session.chat_template_source,
            "decode_seconds": core.decode_seconds(),
            "max_draft_length": core.max_draft_length,
            "max_candidates": core.max_candidates,
            "max_draft_tokens": core.max_draft_tokens,
        }

    async def _show_vocabulary(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._vocabulary))

    def _vocabulary(self) -> dict[str, Any]:
        table = backend_of(self._session).vocabulary_table()
        return {
            # Each character is one byte, because a token may end inside a UTF-8 character.
            "pieces": [piece.decode("latin-1") for piece in table.pieces],
            "hidden": table.hidden,
            "ends": table.ends,
            "fingerprint": f"{table.fingerprint:016x}",
        }

    async def _begin(self, request: Request) -> Response:
        fields = await self._body_reader.fields(request)
        client = client_of(request)
        id_ = secrets.token_hex(12)
        self._replace(fields, id_)
        self._drop_finished()
        self._check_room(client)
        self._beginning.append(client)
        try:
            one, jobs = await self._body_reader.run(
                request, lambda: self._prepared(fields, client), fields.n_bytes
            )
        finally:
            self._beginning.remove(client)
        self._open[id_] = one
        if self._named.get(fields.text("name"), id_) != id_:
            self._forget(id_)  # the same name was opened again meanwhile
            raise _gone()
        answer = await self._answer(id_, lambda: one.first(jobs), fields)
        return JSONResponse({"id": id_, **one.prompt_field(), **answer})

    def _prepared(self, fields: Fields, client: str) -> tuple[Verification, list[QueuedRequest]]:
        def prepare() -> tuple[Verification, list[QueuedRequest]]:
            opening = Opening(self._session, fields, self._settings)
            one = Verification(self._session, opening, client, self._metrics.count_round)
            return one, one.prepare()

        return reported(prepare, names_of(fields))

    def _replace(self, fields: Fields, id_: str) -> None:
        """End an earlier generation with the same name: its client did not get the answer."""
        name = fields.text("name")
        if len(name) > _LONGEST_NAME:
            fields.refuse("name", f"at most {_LONGEST_NAME} characters")
        if name:
            self._forget(self._named.pop(name, ""))
            self._named[name] = id_
            while len(self._named) > 4 * _MOST_OPEN:
                del self._named[next(iter(self._named))]

    def _check_room(self, client: str) -> None:
        if self._n_open >= _MOST_OPEN:
            raise ApiError(
                503,
                f"{_MOST_OPEN} generations are open, the maximum; try again later.",
                code="server_overloaded",
            )
        if self._n_of(client) >= _MOST_EACH:
            raise ApiError(
                503,
                f"A client may have at most {_MOST_EACH} open generations.",
                code="server_overloaded",
            )

    def _n_of(self, client: str) -> int:
        """Return how many generations of a client are running, or about to begin."""
        waiting = [one.client for one in self._open.values() if not one.over]
        return [*waiting, *self._beginning].count(client)

    async def _round(self, request: Request) -> Response:
        fields = await self._body_reader.fields(request)
        name = request.path_params["id"]
        one = self._open.get(name)
        if one is None:
            raise _gone()
        return JSONResponse(await self._answer(name, lambda: one.round(fields), fields))

    async def _answer(self, name: str, round_: Callable[[], Any], fields: Fields) -> dict[str, Any]:
        one = self._open[name]
        # A generation is not idle while its client waits for the server.
        self._calls[name] += 1
        if timer := self._timers.pop(name, None):
            timer.cancel()
        try:
            async with self._places.round(name):
                news: dict[str, Any] = await round_()
        except SpecllamaError as error:
            if one.over:  # an invalid draft does not end it
                self._forget(name)
            if isinstance(error, ClosedError):
                raise _gone() from None
            raise ApiError.of(error, names_of(fields)) from None
        finally:
            self._calls[name] -= 1
            if self._calls[name] == 0:
                del self._calls[name]
                self._count_idle(name)
        if one.over:  # it needs no place to repeat its last answer
            self._places.leave(name)
        return news

    @property
    def _n_open(self) -> int:
        return len(self._open) + len(self._beginning)

    def _drop_finished(self) -> None:
        """Drop finished generations if room is needed. Until then they keep their last answer."""
        for name in [name for name, one in self._open.items() if one.over]:
            if self._n_open < _MOST_OPEN:
                return
            self._forget(name)

    async def _end(self, request: Request) -> Response:
        self._forget(request.path_params["id"])
        return Response(status_code=204)

    def _count_idle(self, name: str) -> None:
        """Start a generation's idle timer."""
        if name not in self._open:
            return
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(self._settings.idle, self._forget, name)

    def _forget(self, name: str) -> None:
        if one := self._open.pop(name, None):
            if not one.over:
                self._metrics.count_outcome("cancelled")
            one.end()
            self._places.leave(name)
        if timer := self._timers.pop(name, None):
            timer.cancel()


def _gone() -> ApiError:
    return ApiError(410, "The generation does not exist, or has ended; open it again.", code="gone")
