"""The server's application, with all its paths."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from specllama import Handle, QueueFullError, SpecSession
from specllama.requests.background import queue_load, submitted
from specllama.requests.queued_request import QueuedRequest
from specllama.server import page
from specllama.server.answer import Answer
from specllama.server.body.body_reader import BodyReader, reported
from specllama.server.body.fields import Fields
from specllama.server.endpoint import Endpoint
from specllama.server.error import ApiError, log, printable
from specllama.server.http.asgi import application
from specllama.server.http.authorization import owner_of
from specllama.server.http.request_log import state_of
from specllama.server.llama_server.introspection import Introspection
from specllama.server.llama_server.slots import Slots
from specllama.server.metrics import Metrics
from specllama.server.ollama.models import OllamaModels
from specllama.server.paths import ENDPOINTS
from specllama.server.settings import Settings
from specllama.server.verify.routes import Verify


class App:
    """An ASGI application that answers requests with a session.

    Args:
        session: The session; the application does not close it.
        settings: The server's settings.
    """

    def __init__(self, session: SpecSession, settings: Settings) -> None:
        self._session = session
        self._settings = settings
        self._metrics = Metrics()
        self._answers: weakref.WeakSet[Answer] = weakref.WeakSet()
        self._body_reader = BodyReader(
            settings.most_bytes(media=session.sees or session.hears),
            allow_image_urls=settings.allow_image_urls,
        )
        self._verify = Verify(session, settings, self._body_reader, self._metrics)
        self._began = int(time.time())
        self._ending = False
        self._application = application(
            [
                *page.routes(),
                Route("/health", self._health),
                Route("/v1/health", self._health),
                Route("/metrics", self._show_metrics),
                *(
                    route
                    for path in ("/v1/models", "/models")
                    for route in (
                        Route(path, self._list_models),
                        Route(path + "/{name:path}", self._show_model),
                    )
                ),
                *(
                    Route(path, partial(self._answer, kind), methods=["POST"])
                    for path, kind in ENDPOINTS.items()
                ),
                *(
                    Route(path, self._cancel, methods=["POST"])
                    for name in ("/completions", "/chat/completions")
                    for path in (f"/v1{name}/{{id}}/cancel", f"{name}/{{id}}/cancel")
                ),
                *Introspection(session, settings, self._body_reader).routes,
                *OllamaModels(session, settings, self._body_reader).routes,
                *Slots(session, settings, self._body_reader).routes,
                *self._verify.routes,
            ],
            settings,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    @property
    def n_answers(self) -> int:
        """Number of answers in progress."""
        return sum(not answer.ended for answer in self._answers)

    def end_answers(self) -> None:
        """End all generations, including those that begin later. Every client gets the text
        generated so far."""
        self._ending = True
        for answer in list(self._answers):
            answer.cancel()
        self._verify.end_all()

    async def _answer(self, kind: type[Endpoint], request: Request) -> ASGIApp:
        owner = owner_of(request.scope)

        def prepare(fields: Fields) -> tuple[Endpoint, list[QueuedRequest]]:
            endpoint = kind(self._session, fields, self._settings)
            return endpoint, endpoint.prepare(owner)

        endpoint, jobs = await self._body_reader.read(request, prepare)
        handles = reported(lambda: self._submitted(jobs), endpoint.given)
        for handle in handles:
            self._count(handle)
        if self._settings.log_texts:
            self._log_texts(jobs, handles)
        state_of(request.scope)["handles"] = handles
        answer = Answer(endpoint, handles, self._settings.timeout)
        self._answers.add(answer)
        if self._ending:
            answer.cancel()
        return answer

    async def _cancel(self, request: Request) -> Response:
        """End an answer. Its client gets the text generated so far, as after `timeout`."""
        name = request.path_params["id"]
        for answer in list(self._answers):
            if answer.id == name and not answer.ended:
                answer.cancel()
                return JSONResponse({"id": name, "cancelled": True})
        raise ApiError(404, f"No answer with the id {name!r:.80} is in progress.", code="not_found")

    def _submitted(self, jobs: Sequence[QueuedRequest]) -> list[Handle]:
        try:
            return submitted(self._session, jobs)
        except QueueFullError:
            self._metrics.refuse()
            raise

    def _log_texts(self, jobs: Sequence[QueuedRequest], handles: Sequence[Handle]) -> None:
        """Log the prompts now, and the answers when they are complete."""

        def answered(handle: Handle) -> None:
            if (answer := handle.so_far()) is not None:
                log.info("Answer: %s", printable(answer.text))

        for job, handle in zip(jobs, handles, strict=True):
            log.info(
                "Prompt: %s", printable(self._session.detokenize(job.request.tokens, special=True))
            )
            handle.add_done_callback(answered)

    def _count(self, handle: Handle) -> None:
        handle.add_done_callback(self._metrics.count)

    async def _list_models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def _show_model(self, request: Request) -> Response:
        if not request.path_params["name"]:  # the path ends with a slash
            return await self._list_models(request)
        if request.path_params["name"] != self._settings.name:
            raise ApiError(
                404,
                f"There is no model {request.path_params['name']!r:.80}, only "
                f"{self._settings.name!r}.",
                code="model_not_found",
            )
        return JSONResponse(self._model())

    def _model(self) -> dict[str, object]:
        return {
            "id": self._settings.name,
            "object": "model",
            "created": self._began,
            "owned_by": "specllama",
            "meta": {
                "description": self._session.model_description,
                "n_ctx": self._session.n_ctx,
                "n_vocab": self._session.n_vocab,
                "chat": self._session.has_chat_template,
                "vision": self._session.sees,
                "audio": self._session.hears,
            },
        }

    async def _health(self, request: Request) -> Response:
        load = queue_load(self._session)
        return JSONResponse({"status": "ok", "running": load.n_running, "waiting": load.n_waiting})

    async def _show_metrics(self, request: Request) -> Response:
        text = self._metrics.text(queue_load(self._session))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
