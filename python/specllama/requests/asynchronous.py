"""Requests from asyncio: the async twins of a session's methods."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from typing_extensions import Self, Unpack

from specllama._closing import Closing
from specllama._core import Chunk
from specllama.model.chat_template import Message
from specllama.requests.background import BackgroundRequests, prepared
from specllama.requests.options import GenerateOptions
from specllama.requests.queued_request import QueuedRequest
from specllama.requests.request import Request
from specllama.requests.stream import Generation

T = TypeVar("T")


class AsyncRequests(BackgroundRequests, Closing):
    """A loaded model that accepts requests from asyncio without blocking the event loop."""

    async def agenerate(
        self, prompt: str | Iterable[int], *, n: int = 1, **options: Unpack[GenerateOptions]
    ) -> Generation:
        """Continue a prompt without blocking the event loop. Cancelling the task ends the request.

        Args:
            prompt: As for `generate`, but only one. (For several, gather several calls.)
            n: As for `generate`.
            **options: As for `generate`.

        Raises the errors of `submit` and `Handle.result`.
        """
        return await self._acontinued(lambda: (prompt, GenerateOptions(**options)), n)

    def astream(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> AsyncGenerator[Chunk, None]:
        """Continue a prompt in chunks: `async for chunk in session.astream(...)`.

        Arguments and errors are those of `submit`. Leaving the loop or cancelling the task ends the
        request. (After a `break` it ends when the iterator is closed or garbage-collected.)
        """
        return self._achunks(lambda: (prompt, GenerateOptions(**options)))

    def astream_chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> AsyncGenerator[Chunk, None]:
        """Answer the last message of a conversation in chunks: see `astream`."""
        return self._achunks(
            lambda: (self.render_chat(messages, template_args), GenerateOptions(**options))
        )

    async def ainfill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Fill a gap in a text; see `agenerate`. Arguments and errors are those of
        `SpecSession.infill`."""
        return await self._acontinued(
            lambda: self._infill_request(prefix, suffix, files, GenerateOptions(**options)), n
        )

    def astream_infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> AsyncGenerator[Chunk, None]:
        """As `ainfill`, but in chunks: see `astream`."""
        return self._achunks(
            lambda: self._infill_request(prefix, suffix, files, GenerateOptions(**options))
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    async def _acontinued(
        self, make: Callable[[], tuple[str | Iterable[int], GenerateOptions]], n: int
    ) -> Generation:
        """Implement `agenerate`. `make` returns prompt and options; another thread calls it."""

        def prepare() -> list[QueuedRequest]:
            prompt, options = make()
            return prepared(self, [prompt], n, options)

        jobs = await self._aside(prepare)
        try:
            self._submit(jobs, keep=True)
            answers = [await handle for handle in self._handles(jobs)]
        finally:
            self._cancel(jobs)
        self._last = jobs[-1].so_far
        return Generation.of_choices(answers)

    def _achunks(
        self, make: Callable[[], tuple[str | Iterable[int], GenerateOptions]]
    ) -> AsyncGenerator[Chunk, None]:
        """Implement `astream`. `make` is as for `_acontinued`."""
        jobs: list[QueuedRequest] = []

        def prepare() -> list[QueuedRequest]:
            prompt, options = make()
            return self._jobs([Request.make(self, prompt, options)])

        async def chunks() -> AsyncGenerator[Chunk, None]:
            jobs.extend(await self._aside(prepare))
            (handle,) = self._handles(jobs)
            try:
                self._submit(jobs, keep=True)
                while several := await handle.next_chunks():
                    for chunk in several:
                        yield chunk
            finally:
                self._cancel(jobs)

        iterator = chunks()
        # asyncio closes a collected iterator in a later step of the event loop: too late for a call
        # that follows at once.
        weakref.finalize(iterator, self._cancel, jobs).atexit = False
        return iterator

    async def _aside(self, call: Callable[[], T]) -> T:
        """Call a function in another thread, because tokenizing a long prompt or reading a JSON
        schema may take a while. Raises BusyError in a thread that may not wait: the other thread
        might wait for the drafter that is running here."""
        import asyncio

        self._worker.check_may_wait()
        return await asyncio.to_thread(call)
