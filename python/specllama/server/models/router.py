"""The application of a server of several models: finds the model of a request and forwards it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from specllama.server import page
from specllama.server.body.body_reader import BodyReader
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.http.asgi import application
from specllama.server.models.child import GONE
from specllama.server.models.forward import Forward
from specllama.server.models.loaded_models import LoadedModels
from specllama.server.models.metrics import merged
from specllama.server.models.served_model import ServedModel
from specllama.server.ollama.card import DEFAULT_TAG, listed, shown
from specllama.server.ollama.fields import keep_alive
from specllama.server.ollama.models import version
from specllama.server.paths import POST_PATHS
from specllama.server.settings import Settings

_ASSUMED = ("completion", "tools")
"""Capabilities reported for a model that was never loaded, by Ollama's names."""

_MOST_NAMED = 20

_LONGEST = 1e7
"""Seconds; longer means never."""


class Router:
    """An ASGI application that forwards requests to models.

    A request names its model in the field `model` or in the query. Without a name it is for the
    first model. /upstream/NAME has all paths of that model's server.

    Args:
        models: The models. The application ends their processes when it ends.
        settings: The server's settings; `name` is not used.
    """

    def __init__(self, models: LoadedModels, settings: Settings) -> None:
        self._models = models
        self._settings = settings
        self._body_reader = BodyReader(settings.most_bytes(media=True))
        self._began = int(time.time())
        self._listed: dict[str, dict[str, Any]] = {}  # by name: models that were never loaded
        by_body = [
            *POST_PATHS, "/v1/verify", "/v1/verify/{id}", "/slots/{id}",
        ]  # fmt: skip
        self._application = application(
            [
                *page.routes(),
                Route("/health", self._health),
                Route("/v1/health", self._health),
                Route("/metrics", self._metrics),
                *(
                    route
                    for path in ("/v1/models", "/models")
                    for route in (
                        Route(path, self._list),
                        Route(path + "/{name:path}", self._show),
                    )
                ),
                Route("/props", partial(self._of_loaded, "/props")),
                Route("/slots", partial(self._of_loaded, "/slots")),
                Route("/api/version", version),
                Route("/api/tags", self._ollama_list),
                Route("/api/ps", self._ollama_loaded),
                Route("/api/show", self._ollama_show, methods=["POST"]),
                *(
                    Route(path, self._cancel, methods=["POST"])
                    for name in ("/completions", "/chat/completions")
                    for path in (f"/v1{name}/{{id}}/cancel", f"{name}/{{id}}/cancel")
                ),
                *(Route(path, self._by_field, methods=["POST"]) for path in by_body),
                Route("/v1/verify", self._by_query),
                Route("/v1/verify/vocabulary", self._by_query),
                Route("/v1/verify/{id}", self._by_query, methods=["DELETE"]),
                Route("/upstream/{path:path}", self._upstream, methods=["GET", "POST", "DELETE"]),
            ],
            settings,
            self._lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    @property
    def n_answers(self) -> int:
        """Number of answers in progress."""
        return self._models.n_answers

    def end_answers(self) -> None:
        """End all answers. Every client gets the text generated so far."""
        self._models.end_answers()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._models.preload()
        try:
            yield
        finally:
            await self._models.close()

    def _model(self, name: str) -> ServedModel:
        """Return the model with a name; the first model if the name is "". Raises ApiError."""
        models = self._models.models
        if not name:
            return next(iter(models.values()))
        found = models.get(name) or models.get(name.removesuffix(DEFAULT_TAG))
        if found is None:
            more = ", ..." if len(models) > _MOST_NAMED else ""
            names = ", ".join([*models][:_MOST_NAMED]) + more
            raise ApiError(
                404, f"The model {name!r:.80} does not exist; there are: {names}.",
                param="model", code="model_not_found",
            )  # fmt: skip
        return found

    async def _by_field(self, request: Request) -> ASGIApp:
        body = await self._body_reader.body(request)
        fields = await self._body_reader.parsed(request, body) if body else Fields({})
        model = self._model(fields.text("model") or request.query_params.get("model", ""))
        if (seconds := keep_alive(fields)) is not None:
            model.idle = seconds if 0 <= seconds <= _LONGEST else math.inf
        return self._forward(request, model, body, request.url.path)

    async def _by_query(self, request: Request) -> ASGIApp:
        model = self._model(request.query_params.get("model", ""))
        return self._forward(request, model, b"", request.url.path)

    async def _upstream(self, request: Request) -> ASGIApp:
        path = request.path_params["path"]
        names = [name for name in self._models.models if f"{path}/".startswith(f"{name}/")]
        if not names:
            self._model(path.partition("/")[0] or "?")  # its error lists the models
            raise ApiError(404, "The path must be /upstream/NAME/PATH; NAME is a model's name.")
        name = max(names, key=len)
        body = await self._body_reader.body(request)
        return self._forward(request, self._model(name), body, path[len(name) :] or "/")

    def _forward(self, request: Request, model: ServedModel, body: bytes, path: str) -> ASGIApp:
        query: bytes = request.scope["query_string"]
        target = quote(path).encode() + (b"?" + query if query else b"")
        return Forward(self._models, model, body, target, self._settings.timeout)

    async def _cancel(self, request: Request) -> Response:
        """End an answer, on the model that generates it."""
        for model in self._models.loaded:
            answer = await self._of(model, quote(request.url.path), b"")
            if answer is not None and "cancelled" in answer:
                return JSONResponse(answer)
        name = request.path_params["id"]
        raise ApiError(404, f"No answer with the id {name!r:.80} is in progress.", code="not_found")

    async def _of_loaded(self, path: str, request: Request) -> Response:
        """Answer with a model's description of itself. This neither loads the model nor keeps it
        loaded."""
        model = self._model(request.query_params.get("model", ""))
        answer = await self._of(model, path)
        if answer is None:
            answer = [] if path == "/slots" else {"model_alias": model.name, "is_sleeping": True}
        return JSONResponse(answer)

    async def _of(self, model: ServedModel, path: str, body: bytes | None = None) -> Any:
        """Return a loaded model's answer, parsed as JSON; None if the model is not loaded."""
        if model.child is None or model.state != "loaded":
            return None
        try:
            return json.loads(await model.child.ask(path, body))
        except GONE:
            return None

    async def _health(self, request: Request) -> Response:
        models = self._models
        return JSONResponse(
            {"status": "ok", "running": models.n_answers, "waiting": models.n_waiting}
        )

    async def _metrics(self, request: Request) -> Response:
        texts = {}
        for model in self._models.loaded:
            if model.child is not None:
                try:
                    texts[model.name] = (await model.child.ask("/metrics")).decode()
                except GONE:
                    continue
        own = (
            "# HELP specllama_models_loaded Loaded models.\n"
            "# TYPE specllama_models_loaded gauge\n"
            f"specllama_models_loaded {len(self._models.loaded)}\n"
            "# HELP specllama_requests_waiting_for_models Requests that wait for a model.\n"
            "# TYPE specllama_requests_waiting_for_models gauge\n"
            f"specllama_requests_waiting_for_models {self._models.n_waiting}\n"
        )
        return PlainTextResponse(own + merged(texts), media_type="text/plain; version=0.0.4")

    async def _list(self, request: Request) -> Response:
        data = [self._described(one) for one in self._models.models.values()]
        return JSONResponse({"object": "list", "data": data})

    async def _show(self, request: Request) -> Response:
        if not request.path_params["name"]:  # the path ends with a slash
            return await self._list(request)
        return JSONResponse(self._described(self._model(request.path_params["name"])))

    def _described(self, model: ServedModel) -> dict[str, Any]:
        (known,) = model.cards.get("/v1/models", {"data": [{}]})["data"]
        failed = {} if model.failed is None else {"failed": True, "error": str(model.failed)}
        return {
            "id": model.name,
            "object": "model",
            "created": self._began,
            "owned_by": "specllama",
            "status": {"value": model.state, **failed},
            "meta": known.get("meta"),
        }

    async def _ollama_list(self, request: Request) -> Response:
        entries = await run_in_threadpool(
            lambda: [self._ollama_entry(one) for one in self._models.models.values()]
        )
        return JSONResponse({"models": entries})

    def _ollama_entry(self, model: ServedModel) -> dict[str, Any]:
        if known := model.cards.get("/api/tags"):
            (entry,) = known["models"]
            return dict(entry)
        if model.name not in self._listed:
            self._listed[model.name] = listed(model.name, model.entry.path, _ASSUMED)
        return self._listed[model.name]

    async def _ollama_loaded(self, request: Request) -> Response:
        answers = [await self._of(one, "/api/ps") for one in self._models.loaded]
        return JSONResponse({"models": [one for each in answers if each for one in each["models"]]})

    async def _ollama_show(self, request: Request) -> Response:
        fields = await self._body_reader.fields(request)
        model = self._model(fields.text("model") or fields.text("name"))
        if (known := model.cards.get("/api/show")) is not None:
            return JSONResponse(known)
        entry = await run_in_threadpool(lambda: self._ollama_entry(model))
        return JSONResponse(shown(entry, _ASSUMED))
