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
    """A request, and what the worker leaves of it for its readers: chunks, rounds and the end.

    Attributes:
        request: The request.
        record: The generation in the core; None before it has begun.
        wanted: False once the request was cancelled.
        ending: Done when the request has ended, with the result or the error. Cannot be cancelled.
        rounds: Set if the request's drafts come from elsewhere; else None.
        waits_since: Time of the monotonic clock at which the request began to wait for such a
            draft; None: it does not wait.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.record: Record | None = None
        self.wanted = True
        self.ending: Future[Generation] = Future()
        self.ending.set_running_or_notify_cancel()
        self.rounds = None if request.hosted is None else Rounds(len(request.hosted.generated))
        self.waits_since: float | None = None
        self._lock = RLock()  # reentrant: collecting a reader calls give_back anywhere
        self._chunks: list[Chunk] = []
        self._news: list[Round] = []
        self._wakes: list[Wake] = []

    @cached_property
    def prompt(self) -> NDArray[np.int32]:
        """The prompt as an array, for comparisons with other prompts."""
        return np.asarray(self.request.tokens, dtype=np.int32)

    def give(self, chunks: list[Chunk]) -> None:
        """Leave chunks for the readers. The worker never waits for a reader: max_tokens bounds how
        much an unread request can hold."""
        if not chunks:
            return
        with self._lock:
            self._chunks.extend(chunks)
            waited_for = bool(self._wakes)
        if waited_for:
            self._wake()

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        """Put chunks that were taken but not read back, in front of those that are there."""
        with self._lock:
            self._chunks[:0] = chunks

    def tell(self, news: Round) -> None:
        """Leave a round for the party that drafts elsewhere."""
        with self._lock:
            self._news.append(news)
        self._wake()

    def take_news(self, wake: Wake) -> list[Round] | None:
        """Do as `take` does, for rounds."""
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
        """End the request with its generation."""
        self._end(lambda: self.ending.set_result(generation))

    def fail(self, error: BaseException) -> None:
        """End the request with an error."""
        self._end(lambda: self.ending.set_exception(error))

    def _end(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        finally:  # a done-callback may be interrupted
            self._wake()

    def take(self, wake: Wake) -> list[Chunk] | None:
        """Return the chunks not yet taken. If there are none: None after the request's end; before
        it [], and `wake` is called once, from any thread, when there is something new.

        Raises the error that ended the request, once all chunks were taken.
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
        """Return what was generated so far; None before the request has begun. May wait for a
        round."""
        if self.ending.done() and self.ending.exception() is None:
            return self.ending.result()
        return None if self.record is None else self.record.result()

    def _wake(self) -> None:
        with self._lock:
            wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()
