"""How a request is read: its body, and what takes a while in threads beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from specllama.errors import SpecllamaError
from specllama.server.error import ApiError
from specllama.server.fields import Fields, read_body

_MOST_THREADS = 2
"""Threads that read requests. More would only take processors from the model."""

_T = TypeVar("_T")


class Reading:
    """Reads the requests of all paths of an application, which share its few threads.

    Args:
        max_body: The most bytes of a body.
    """

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._few = asyncio.Semaphore(_MOST_THREADS)

    async def fields(self, request: Request) -> Fields:
        """Return the fields of a request's body. Raises ApiError."""
        return Fields.parse(await read_body(request, self._max_body))

    async def run(
        self, fields: Fields, function: Callable[[], _T], names: Collection[str] | None = None
    ) -> _T:
        """Return what a function returns that may take a while, such as to tokenize or to convert
        schemas. It runs in a thread, not in the event loop.

        Args:
            fields: The fields of the request.
            function: The function.
            names: What the client may have called what was wrong; None: the names of the fields.

        Raises:
            ApiError: The function raised it, or a SpecllamaError.
        """
        try:
            async with self._few:
                return await run_in_threadpool(function)
        except SpecllamaError as error:
            raise ApiError.of(error, fields.given if names is None else names) from None
