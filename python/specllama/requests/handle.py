"""A request that the session works at by itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from specllama import _check
from specllama._core import Chunk
from specllama.errors import ArgumentError
from specllama.requests.job import Job, Wake
from specllama.requests.round import Round
from specllama.requests.stream import Generation
from specllama.requests.worker import Worker

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class Handle:
    """A request that the session works at by itself. Made by `SpecSession.submit`.

    It may be used from any thread, awaited (`await handle` is its result), and iterated over, which
    yields the chunks as they become certain; each chunk goes to one reader. Nobody has to read: the
    session never waits for a reader. Without a handle, a request runs on as long as the session is
    held. In a forked process waiting raises ClosedError.
    """

    def __init__(self, owner: object, worker: Worker, job: Job) -> None:
        self._owner = owner  # the session, which lives as long as somebody wants something of it
        self._job = job
        self._worker = worker

    def result(self, timeout: float | None = None) -> Generation:
        """Wait for the end and return the whole; of a cancelled request, what there was.

        Args:
            timeout: Most seconds to wait. None: as long as it takes.

        Raises:
            concurrent.futures.TimeoutError: It has not ended yet.
            ClosedError: It was cancelled, or the session closed, before it had begun; or the
                session was closed before it had ended.
            BusyError: A drafter of the session, or a done-callback, may not wait for it.
            SpecllamaError: What else went wrong with it: see `SpecSession.generate`. What was
                generated until then is in `so_far()`.
        """
        if not self.done():
            self._worker.check_may_wait()
        return self._job.ending.result(timeout)

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._job.ending.done()

    @property
    def begun(self) -> bool:
        """Whether its turn has come; never waits."""
        return self._job.record is not None

    def cancel(self) -> None:
        """End it where it is, before the next round. Nothing happens if it has ended already."""
        self._worker.cancel(self._job)

    def so_far(self) -> Generation | None:
        """Return what has been generated so far; None before it has begun. May take as long as a
        round takes."""
        return self._job.so_far()

    def add_done_callback(self, callback: Callable[[Handle], object]) -> None:
        """Have a function called with the handle when it has ended, at once if it has. It is called
        by the thread that works at all requests, and must be quick; what it raises there is logged
        (by `logging`), and nothing else comes of it."""
        if not callable(callback):
            raise ArgumentError(f"callback must be a function, not {_check.quoted(callback)}.")
        # Not held for longer than it waits: it holds the session, which would hold itself.
        waiting = [partial(self._call, callback)]
        self._job.ending.add_done_callback(lambda _: waiting.pop()())

    def _call(self, callback: Callable[[Handle], object]) -> None:
        try:
            callback(self)
        except BaseException:
            if not self._worker.is_this_thread:  # there it may be a Ctrl-C
                raise
            _LOG.exception("A done-callback raised.")

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks as they come.

        Raises what ended the request, if it went wrong; and ArgumentError for one made by
        `SpecSession.host`.
        """
        self._check_hosted(False)
        while True:
            news = threading.Event()
            chunks = self._job.take(news.set)
            if chunks is None:
                return
            if not chunks:
                self._worker.check_may_wait()
                news.wait()
            unread = deque(chunks)
            try:
                while unread:
                    yield unread.popleft()
            finally:  # who leaves the loop may begin another
                if unread:
                    self._job.give_back(unread)

    async def next_chunks(self) -> list[Chunk]:
        """Wait for chunks and return all there are; [] after the last.

        Raises what ended the request, if it went wrong; and ArgumentError for one made by
        `SpecSession.host`.
        """
        self._check_hosted(False)
        self._worker.check_process()
        return await _next(self._job.take)

    def offer(
        self,
        n_before: int,
        tokens: Iterable[int],
        confidence: Sequence[float] = (),
        branches: Iterable[tuple[int, Iterable[int]]] = (),
    ) -> None:
        """Leave a draft for a request made by `SpecSession.host`; it takes the place of the one
        before. Waits for nobody; nothing happens when the request has ended.

        Args:
            n_before: How many tokens of the text, prompt included, the draft goes on from.
            tokens: Token ids, none or as many as there may be (64 are verified at once).
            confidence: Of each token, how likely it is right when those before it are, 0 to 1; of
                those that have none, 1. Behind those of `tokens` come those of the branches.
            branches: What may come in place of the draft: behind how many of its tokens, and the
                token ids that follow there. They are verified as far as the session's `spec_tree`
                and its memory have room for them (docs/trees.md), else left out.

        Raises:
            ArgumentError: An id is no token, a number is out of range, or the request has not
                begun yet.
        """
        self._worker.offer(
            self._job,
            _check.integer("n_before", n_before, low=0),
            _check.tokens("tokens", tokens),
            [_check.number("confidence", one) for one in confidence],
            _branches(branches),
        )

    async def next_rounds(self) -> list[Round]:
        """Wait for rounds of a request made by `SpecSession.host`, and return all there are; []
        after the last. Raises what ended the request, if it went wrong; and ArgumentError for one
        that was made otherwise."""
        self._check_hosted(True)
        self._worker.check_process()
        return await _next(self._job.take_news)

    def _check_hosted(self, wanted: bool) -> None:
        if (self._job.rounds is not None) is not wanted:
            raise ArgumentError(
                "The request was not made by host(); read its chunks."
                if wanted
                else "The request was made by host(); its chunks come with its rounds "
                "(next_rounds)."
            )

    def __await__(self) -> Generator[Any, None, Generation]:
        self._worker.check_process()
        return asyncio.wrap_future(self._job.ending).__await__()


async def _next(take: Callable[[Wake], list[T] | None]) -> list[T]:
    loop = asyncio.get_running_loop()
    while True:
        news = asyncio.Event()
        taken = take(partial(_soon, loop, news.set))
        if taken is None:
            return []
        if taken:
            return taken
        await news.wait()


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # a loop that has been closed has no readers any more
        loop.call_soon_threadsafe(call)


def _branches(given: Iterable[tuple[int, Iterable[int]]]) -> list[tuple[int, Iterable[int]]]:
    try:
        pairs = [(depth, tokens) for depth, tokens in given]
    except (TypeError, ValueError):
        raise ArgumentError("branches must be pairs of a number and token ids.") from None
    return [
        (_check.integer("branches", depth, low=0), _check.tokens("branches", tokens))
        for depth, tokens in pairs
    ]
