"""The caller's handle for a request that runs in the background."""

from __future__ import annotations

import concurrent.futures
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

from specllama import _check
from specllama._core import Chunk
from specllama.errors import ArgumentError
from specllama.requests.queued_request import QueuedRequest
from specllama.requests.stream import Generation
from specllama.requests.wakeup import Wakeup
from specllama.requests.worker import Worker

_LOG = logging.getLogger(__name__)


class Handle:
    """A request that runs in the background, returned by `SpecSession.submit`.

    A handle may be used from any thread. `await handle` gives the result; iterating over the handle
    yields the chunks as they become final, and each chunk goes to one reader. Reading is optional:
    the session never waits for a reader. If the handle is dropped, the request continues as long as
    the session is referenced. In a forked process, waiting raises ClosedError.
    """

    def __init__(self, owner: object, worker: Worker, job: QueuedRequest) -> None:
        self._owner = owner  # keeps the session alive as long as the handle
        self._job = job
        self._worker = worker
        self._others: tuple[Handle, ...] = ()

    @classmethod
    def of_choices(cls, handles: Sequence[Handle]) -> Handle:
        """Return the first of several handles, with all of them as its `choices`."""
        handles[0]._others = tuple(handles[1:])
        return handles[0]

    def __repr__(self) -> str:
        state = "ended" if self.done() else "running" if self.begun else "waiting"
        return f"<Handle, {state}>"

    @property
    def choices(self) -> list[Handle]:
        """Handles of all choices of a request with `n`, of which this is the first; else only this
        one."""
        return [self, *self._others]

    def result(self, timeout: float | None = None) -> Generation:
        """Wait for the end of the request and return the result. If the request was cancelled, that
        is the text generated until then.

        Args:
            timeout: Maximum seconds to wait. None: no limit.

        Raises:
            concurrent.futures.TimeoutError: The request has not ended in time.
            ClosedError: The request was cancelled before it had begun, the session was closed
                before the request had ended, or this is a forked process.
            BusyError: A drafter of the session, or a done-callback, called this and would wait for
                itself.
            SpecllamaError: The request failed: see `SpecSession.generate`. `so_far()` has the text
                generated before.
        """
        timeout = _check.optional(_check.number, "timeout", timeout)
        if not self.done():
            self._worker.check_may_wait()
            ended = Wakeup()
            with self._job.awaited(ended.wake):
                ended.wait(timeout)
            if not self.done():
                raise concurrent.futures.TimeoutError
        return self._job.result()

    def done(self) -> bool:
        """Whether the request has ended, successfully or not."""
        return self._job.done

    @property
    def begun(self) -> bool:
        """Whether the request has left the queue and begun; never waits."""
        return self._job.state is not None

    def cancel(self) -> None:
        """End the request before its next round. Does nothing if it has already ended."""
        self._worker.cancel(self._job)

    def so_far(self) -> Generation | None:
        """Return the result so far; None before the request has begun. May take as long as a
        round."""
        return self._job.so_far()

    def add_done_callback(self, callback: Callable[[Handle], object]) -> None:
        """Call `callback` with this handle when the request has ended, or at once if it has already
        ended. The thread that runs all requests calls it, so it must be quick. An exception that it
        raises there is logged (by `logging`) and has no other effect."""
        if not callable(callback):
            raise ArgumentError(f"callback must be a function, not {_check.quoted(callback)}.")
        self._job.when_ended(partial(self._call, callback))

    def _call(self, callback: Callable[[Handle], object]) -> None:
        try:
            callback(self)
        except BaseException as error:
            # In the caller's thread this may be a Ctrl-C.
            if not (isinstance(error, Exception) or self._worker.is_this_thread):
                raise
            _LOG.exception("A done-callback raised.")

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks as they become final.

        Raises the error that ended the request, if it failed.
        """
        self._worker.check_process()
        while True:
            news = Wakeup()
            chunks = self._job.take(news.wake)
            if chunks is None:
                return
            if not chunks:
                self._worker.check_may_wait()
                news.wait()
            unread = deque(chunks)
            try:
                while unread:
                    yield unread.popleft()
            finally:  # another loop may read the rest
                if unread:
                    self._job.give_back(unread)

    async def next_chunks(self) -> list[Chunk]:
        """Wait for chunks and return all available ones; [] after the last. Raises the error that
        ended the request, if it failed."""
        import asyncio

        self._worker.check_process()
        loop = asyncio.get_running_loop()
        while True:
            news = asyncio.Event()
            chunks = self._job.take(partial(loop.call_soon_threadsafe, news.set))
            if chunks is None:
                return []
            if chunks:
                return chunks
            self._worker.check_may_wait()
            await news.wait()

    def __await__(self) -> Generator[Any, None, Generation]:
        return self._ended().__await__()

    async def _ended(self) -> Generation:
        import asyncio

        if not self.done():
            self._worker.check_may_wait()
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            with self._job.awaited(partial(loop.call_soon_threadsafe, ended.set)):
                await ended.wait()
        return self._job.result()
