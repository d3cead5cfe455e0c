"""A model that takes requests from any thread, and from asyncio."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Iterable
from typing import overload

from typing_extensions import Unpack

from specllama import _check, _core
from specllama._core import Chunk
from specllama.handle import Handle
from specllama.loaded_model import LoadedModel
from specllama.options import GenerateOptions
from specllama.request import Request
from specllama.stream import Generation
from specllama.worker import Load, Worker


class AsyncModel(LoadedModel):
    """A loaded model with a thread of its own that works at requests from anywhere."""

    def __init__(self, core: _core.Session, *, n_seq: int, max_queue: int) -> None:
        super().__init__(core)
        self._worker = Worker(core, n_seq=n_seq, max_queue=max_queue)
        # Also when the process ends: then it must not be inside the core any more.
        self._end_worker = weakref.finalize(self, self._worker.close)

    def submit(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Handle:
        """Have a prompt continued in the background; from any thread.

        Arguments are those of `generate`, without n.

        Returns:
            A handle at once; what is wrong with the request beyond its options is found out when
            it begins, and raised by the handle.

        Raises:
            ArgumentError: An option is wrong.
            QueueFullError: `max_queue` requests wait already.
            ClosedError: The session is closed.
        """
        return self._submit(Request.make(self, prompt, options))

    async def astream(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> AsyncGenerator[Chunk, None]:
        """Continue a prompt, chunk by chunk: `async for chunk in session.astream(...)`.

        Arguments and errors are those of `submit`. Who leaves the loop, or is cancelled, ends the
        request. (After a `break`, when the iterator is closed or collected.)
        """
        handle = self._submit(await asyncio.to_thread(Request.make, self, prompt, options))
        try:
            while chunks := await handle.next_chunks():
                for chunk in chunks:
                    yield chunk
        finally:
            handle.cancel()

    @overload
    async def agenerate(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> Generation: ...
    @overload
    async def agenerate(
        self, prompt: str | Iterable[int], *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    async def agenerate(
        self,
        prompt: str | Iterable[int],
        *,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Continue a prompt without blocking the event loop. Cancelling the task ends the request.

        Args:
            prompt: As for `generate`. (For several, gather several calls.)
            n: How many choices to give, as for `generate`; they come as a list.
            **options: See `GenerateOptions`.

        Raises: what `submit` and `Handle.result` raise.
        """
        if n is not None:
            n = _check.integer("n", n, low=1)
        requests = await asyncio.to_thread(Request.choices, self, prompt, options, n or 1)
        handles: list[Handle] = []
        try:
            for request in requests:
                handles.append(self._submit(request))
            answers = [await handle for handle in handles]
        finally:
            for handle in handles:
                handle.cancel()
        return answers[0] if n is None else answers

    @property
    def load(self) -> Load:
        """What the session's thread is at: requests waiting and running, tokens, speed."""
        return self._worker.load

    def _submit(self, request: Request, *, wait: bool = False) -> Handle:
        return Handle(self, self._worker.submit(request, wait=wait), self._worker.cancel)
