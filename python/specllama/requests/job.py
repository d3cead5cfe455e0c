"""A request on its way through the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import cached_property
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from specllama._core import Chunk
from specllama.requests.request import Request
from specllama.requests.round import Round, Rounds
from specllama.requests.stream import Generation, Record

Wake = Callable[[], None]


class Job:
    """Where the worker leaves what became of a request, and its readers find it.

    Attributes:
        request: The request.
        record: Its generation in the core, as soon as it has begun.
        wanted: It was not cancelled.
        ending: Done when it has ended, with the result or the error. Cannot be cancelled.
        rounds: Of a request whose drafts come from elsewhere; else None.
        waits_since: When it began to wait for such a draft, by the monotonic clock; None: it does
            not.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.record: Record | None = None
        self.wanted = True
        self.ending: Future[Generation] = Future()
        self.ending.set_running_or_notify_cancel()
        self.rounds = None if request.hosted is None else Rounds(len(request.hosted.generated))
        self.waits_since: float | None = None
        self._lock = RLock()  # a loop that is collected gives back what it has, anywhere
        self._chunks: list[Chunk] = []
        self._news: list[Round] = []
        self._wakes: list[Wake] = []

    @cached_property
    def prompt(self) -> NDArray[np.int32]:
        """The prompt, to be compared with others."""
        return np.asarray(self.request.tokens, dtype=np.int32)

    def give(self, chunks: list[Chunk]) -> None:
        """Leave chunks for the readers. None of them can keep the worker waiting: max_tokens
        bounds what an unread request can hold."""
        if not chunks:
            return
        with self._lock:
            self._chunks.extend(chunks)
            waited_for = bool(self._wakes)
        if waited_for:
            self._wake()

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        """Put chunks that were taken, and not read, before those that are there."""
        with self._lock:
            self._chunks[:0] = chunks

    def tell(self, news: Round) -> None:
        """Leave a round for who drafts elsewhere."""
        with self._lock:
            self._news.append(news)
        self._wake()

    def take_news(self, wake: Wake) -> list[Round] | None:
        """As `take`, for rounds."""
        with self._lock:
            news, self._news = self._news, []
            if news:
                return news
            if not self.ending.done():
                self._wakes.append(wake)
                return []
        self.ending.result()
        return None

    def finish(self, generation: Generation) -> None:
        """End it with what has been generated."""
        self._end(lambda: self.ending.set_result(generation))

    def fail(self, error: BaseException) -> None:
        """End it with an error."""
        self._end(lambda: self.ending.set_exception(error))

    def _end(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        finally:  # a done-callback may be interrupted
            self._wake()

    def take(self, wake: Wake) -> list[Chunk] | None:
        """Return the chunks not yet taken; if there are none, None if it has ended, else [], and
        `wake` is called, once and from any thread, when there is something new.

        Raises the error that ended it, after its chunks.
        """
        with self._lock:
            chunks, self._chunks = self._chunks, []
            if chunks:
                return chunks
            if not self.ending.done():
                self._wakes.append(wake)
                return []
        self.ending.result()
        return None

    def so_far(self) -> Generation | None:
        """Return what has been generated; None before it has begun. May wait for a round."""
        if self.ending.done() and self.ending.exception() is None:
            return self.ending.result()
        return None if self.record is None else self.record.result()

    def _wake(self) -> None:
        with self._lock:
            wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()
