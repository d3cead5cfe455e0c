"""The paths by which clients of Ollama's API learn about the model."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import specllama
from specllama import SpecSession
from specllama.model.found import look
from specllama.model.loaded_model import path_of
from specllama.server.body_reader import BodyReader
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.ollama.endpoint import zulu
from specllama.server.settings import Settings

_LIKE = "0.13.0"
"""The version of Ollama whose API this is; clients refuse to work with some that are too old."""

_NEVER = datetime(2300, 1, 1, tzinfo=timezone.utc)
_DEFAULT_TAG = ":latest"


class OllamaModels:
    """Serves /api/tags, /api/show, /api/ps and /api/version.

    Args:
        session: The session.
        settings: The model's name.
        body_reader: How requests are read.
    """

    def __init__(self, session: SpecSession, settings: Settings, body_reader: BodyReader) -> None:
        self._session = session
        self._name = settings.name
        self._body_reader = body_reader
        self._began = datetime.now(timezone.utc)

    @property
    def routes(self) -> list[Route]:
        """The routes of these paths."""
        return [
            Route("/api/version", self._version),
            Route("/api/tags", self._tags),
            Route("/api/ps", self._loaded),
            Route("/api/show", self._show, methods=["POST"]),
        ]

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"version": _LIKE, "specllama": specllama.__version__})

    async def _tags(self, request: Request) -> Response:
        entry = await run_in_threadpool(lambda: self._entry)
        return JSONResponse({"models": [entry]})

    async def _loaded(self, request: Request) -> Response:
        entry = await run_in_threadpool(lambda: self._entry)
        size_vram = 0 if self._session.cpu_kernels else entry["size"]
        more = {"expires_at": zulu(_NEVER), "size_vram": size_vram}
        return JSONResponse({"models": [{**entry, **more, "context_length": self._session.n_ctx}]})

    async def _show(self, request: Request) -> Response:
        def asked(fields: Fields) -> str:
            name = fields.text("model") or fields.text("name")
            return name.removesuffix(_DEFAULT_TAG)

        name = asked(await self._body_reader.fields(request))
        if name != self._name.removesuffix(_DEFAULT_TAG):
            raise ApiError(404, f"There is no model {name!r:.80} here, only {self._name!r}.")
        return JSONResponse(await run_in_threadpool(self._described))

    def _described(self) -> dict[str, Any]:
        session, entry = self._session, self._entry
        family = entry["details"]["family"]
        return {
            "modified_at": entry["modified_at"],
            "details": entry["details"],
            "template": session.chat_template_source or "",
            "modelfile": "",
            "parameters": "",
            "license": "",
            "capabilities": self._capabilities,
            "model_info": {
                "general.architecture": family,
                "general.basename": self._name,
                "general.parameter_count": self._file_says["n_parameters"],
                f"{family}.context_length": session.n_ctx,
                f"{family}.vocab_size": session.n_vocab,
            },
        }

    @property
    def _capabilities(self) -> list[str]:
        """What the model can do, in Ollama's words."""
        session = self._session
        found = ["completion"]
        if session.has_chat_template:
            found.append("tools")
            if session.chat_template.thinking is not None:
                found.append("thinking")
        if session.has_infill:
            found.append("insert")
        return found

    @cached_property
    def _file_says(self) -> dict[str, Any]:
        file = look(Path(path_of(self._session))).file
        if file is None:
            return {"architecture": "", "weight_type": "", "n_parameters": 0, "weight_bytes": 0}
        names = ("architecture", "weight_type", "n_parameters", "weight_bytes")
        return {name: getattr(file, name) for name in names}

    @cached_property
    def _entry(self) -> dict[str, Any]:
        """The model as it is in lists. Reading its file takes a while, the first time."""
        file, name = self._file_says, self._name
        said = (name, self._session.model_description, *file.values(), *self._capabilities)
        return {
            "name": name,
            "model": name,
            "modified_at": zulu(self._began),
            "size": file["weight_bytes"],
            # Clients remember by it what a model can do.
            "digest": hashlib.sha256("\0".join(map(str, said)).encode()).hexdigest(),
            "details": {
                "parent_model": "",
                "format": "gguf",
                "family": file["architecture"],
                "families": [file["architecture"]],
                "parameter_size": _rounded(file["n_parameters"]),
                "quantization_level": file["weight_type"],
            },
        }


def _rounded(n_parameters: int) -> str:
    """Return a number of parameters as Ollama writes it, such as 1.5B."""
    if n_parameters >= 1e9:
        return f"{n_parameters / 1e9:.1f}B"
    return f"{n_parameters / 1e6:.2f}M"
