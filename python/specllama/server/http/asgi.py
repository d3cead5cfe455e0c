"""The common parts of this server's applications: authorisation, errors, the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from specllama.server.error import ApiError
from specllama.server.http.authorization import Authorization
from specllama.server.http.request_log import RequestLog
from specllama.server.settings import Settings

_INSTEAD = {
    **dict.fromkeys(
        ("/embedding", "/embeddings", "/v1/embeddings", "/rerank", "/v1/rerank", "/api/embed",
         "/api/embeddings"),
        "embeddings and rankings are not supported",
    ),
    **dict.fromkeys(
        ("/api/create", "/api/pull", "/api/push", "/api/copy", "/api/delete"),
        "the models are given when the server starts",
    ),
}  # fmt: skip
"""Advice for paths of llama.cpp's server and of Ollama's that are not served here."""

_MISTAKE = ApiError(500, "Internal server error; see the server's log.")


def application(
    routes: Sequence[BaseRoute],
    settings: Settings,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
) -> RequestLog:
    """Return an application.

    Args:
        routes: What it serves.
        settings: The server's settings, with its keys and origins.
        lifespan: Runs before the first request and after the last.
    """
    middleware = [Middleware(Authorization, settings)]
    if settings.cors_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
        )
        middleware.insert(0, cors)
    return RequestLog(
        Starlette(
            routes=routes,
            lifespan=lifespan,
            middleware=middleware,
            exception_handlers={
                ApiError: lambda request, error: error.response(request.scope),
                HTTPException: _http_error,
                Exception: lambda request, _: _MISTAKE.response(request.scope),
            },
        )
    )


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path} is not served here."
    if (instead := _INSTEAD.get(request.url.path)) is not None:
        what = f"{request.url.path} is not served here; {instead}."
    response = ApiError(error.status_code, what).response(request.scope)
    response.headers.update(error.headers or {})
    return response
