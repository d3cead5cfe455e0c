"""The paths of Ollama's API that describe the model."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from specllama import SpecSession
from specllama.model.loaded_model import path_of
from specllama.server.body.body_reader import BodyReader
from specllama.server.error import ApiError
from specllama.server.ollama.card import DEFAULT_TAG, VERSION, listed, shown
from specllama.server.ollama.endpoint import zulu
from specllama.server.settings import Settings

_NEVER = datetime(2300, 1, 1, tzinfo=timezone.utc)


class OllamaModels:
    """Serves /api/tags, /api/show, /api/ps and /api/version.

    Args:
        session: The session.
        settings: The server's settings, with the model's name.
        body_reader: Reads the requests.
    """

    def __init__(self, session: SpecSession, settings: Settings, body_reader: BodyReader) -> None:
        self._session = session
        self._name = settings.name
        self._body_reader = body_reader

    @property
    def routes(self) -> list[Route]:
        """The routes of these paths."""
        return [
            Route("/api/version", version),
            Route("/api/tags", self._tags),
            Route("/api/ps", self._loaded),
            Route("/api/show", self._show, methods=["POST"]),
        ]

    async def _tags(self, request: Request) -> Response:
        return JSONResponse({"models": [await run_in_threadpool(lambda: self._entry)]})

    async def _loaded(self, request: Request) -> Response:
        entry = await run_in_threadpool(lambda: self._entry)
        size_vram = 0 if self._session.cpu_kernels else entry["size"]
        more = {"expires_at": zulu(_NEVER), "size_vram": size_vram}
        return JSONResponse({"models": [{**entry, **more, "context_length": self._session.n_ctx}]})

    async def _show(self, request: Request) -> Response:
        fields = await self._body_reader.fields(request)
        name = fields.text("model") or fields.text("name")
        if name.removesuffix(DEFAULT_TAG) != self._name.removesuffix(DEFAULT_TAG):
            raise ApiError(404, f"There is no model {name!r:.80}, only {self._name!r}.")
        return JSONResponse(await run_in_threadpool(self._described))

    def _described(self) -> dict[str, Any]:
        session = self._session
        return shown(
            self._entry, self._capabilities, session.chat_template_source or "",
            context_length=session.n_ctx, vocab_size=session.n_vocab,
        )  # fmt: skip

    @property
    def _capabilities(self) -> list[str]:
        """The model's capabilities, by Ollama's names."""
        session = self._session
        found = ["completion"]
        if session.has_chat_template:
            found.append("tools")
            if session.chat_template.thinking is not None:
                found.append("thinking")
        if session.sees:
            found.append("vision")
        if session.has_infill:
            found.append("insert")
        return found

    @cached_property
    def _entry(self) -> dict[str, Any]:
        """The model's entry for lists."""
        return listed(self._name, Path(path_of(self._session)), self._capabilities)


async def version(request: Request) -> Response:
    """Answer GET /api/version."""
    return JSONResponse(VERSION)
