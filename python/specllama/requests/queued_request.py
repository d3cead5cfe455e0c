"""A request in the worker's queue, and while it runs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import RLock

from specllama._core import Chunk
from specllama.requests.request import Request
from specllama.requests.stream import Generation, GenerationState

Wake = Callable[[], object]


class QueuedRequest:
    """A request, with the chunks and the result that the worker produces for its readers.

    Only the worker's thread, which gets no signals, ends it. In its readers' threads Ctrl-C may
    raise anywhere, so they take the lock only by `with`: the lock is implemented in C, and no
    signal is handled between acquiring it and the block, or between the block and releasing it.

    Attributes:
        request: The request.
        state: The generation in the core; None before it has begun.
        slot: Its slot of the memory; None before it has begun.
        wanted: False after the request was cancelled.
        on_step: Called in the worker's thread with the generation, when it begins and after each
            step.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.state: GenerationState | None = None
        self.slot: int | None = None
        self.wanted = True
        self.on_step: Callable[[GenerationState], object] | None = None
        self._lock = RLock()  # reentrant: collecting a reader calls give_back anywhere
        self._chunks: list[Chunk] = []
        self._wakes: list[Wake] = []
        self._ending: Generation | BaseException | None = None
        self._waiters: list[Wake] = []
        self._callbacks: list[Wake] = []

    @cached_property
    def prompt(self) -> array[int]:
        """The prompt as an array, for comparisons with other prompts."""
        return array("i", self.request.tokens)

    def see(self) -> None:
        """Call `on_step` with the generation. Its errors are ignored."""
        if self.on_step is not None and self.state is not None:
            with suppress(Exception):
                self.on_step(self.state)

    def give(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks for the readers. The worker never waits for a reader: max_tokens limits the
        size of an unread request."""
        if not chunks:
            return
        with self._lock:
            self._chunks.extend(chunks)
            waited_for = bool(self._wakes)
        if waited_for:
            self._wake()

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        """Put back chunks that were taken but not read, before the stored ones."""
        with self._lock:
            self._chunks[:0] = chunks

    def end(self, ending: Generation | BaseException) -> None:
        """End the request with its generation, or with an error."""
        with self._lock:
            self._ending = ending
            waiters, self._waiters = self._waiters, []
            callbacks, self._callbacks = self._callbacks, []
        _call(waiters)  # before the callbacks, which may take a while
        self._wake()
        for callback in callbacks:
            callback()

    @property
    def done(self) -> bool:
        """Whether the request has ended."""
        return self._ending is not None

    def result(self) -> Generation:
        """Return the generation of a request that has ended, or raise the error that ended it."""
        assert self._ending is not None
        if isinstance(self._ending, BaseException):
            raise self._ending
        return self._ending

    @contextmanager
    def awaited(self, wake: Wake) -> Iterator[None]:
        """Within a `with` statement, call `wake` when the request has ended, or at once if it has
        already ended."""
        with self._lock:
            if not self.done:
                self._waiters.append(wake)
        if self.done:
            wake()
        try:
            yield
        finally:
            with self._lock:
                if wake in self._waiters:
                    self._waiters.remove(wake)

    def when_ended(self, callback: Wake) -> None:
        """Call `callback` in the worker's thread when the request has ended, or here at once if it
        has already ended. In the worker's thread it must not raise."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback()

    def take(self, wake: Wake) -> list[Chunk] | None:
        """Return the chunks not yet taken. Without any: None if the request has ended; else [], and
        `wake` is called once, from any thread, when there are new chunks or the end.

        Raises the error that ended the request, after all chunks were taken.
        """
        with self._lock:
            chunks, self._chunks = self._chunks, []
            if chunks:
                return chunks
            if not self.done:
                self._wakes.append(wake)
                return []
        self.result()
        return None

    def so_far(self) -> Generation | None:
        """Return the result so far; None before the request has begun. May wait for a round."""
        if isinstance(self._ending, Generation):
            return self._ending
        return None if self.state is None else self.state.result()

    def _wake(self) -> None:
        with self._lock:
            wakes, self._wakes = self._wakes, []
        _call(wakes)


def _call(wakes: Iterable[Wake]) -> None:
    for wake in wakes:
        with suppress(Exception):  # e.g. of a closed event loop, which has no readers left
            wake()
