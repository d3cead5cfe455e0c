"""A request on its way through the worker."""

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
    """A request, and what the worker leaves of it for its readers: chunks and the end.

    Only the worker's thread, which gets no signals, ends it. In its readers' threads Ctrl-C may
    raise anywhere, so they take the lock by `with` alone: it is in C, and no signal is handled
    between its being taken and the block, nor between the block and its being given back.

    Attributes:
        request: The request.
        state: The generation in the core; None before it has begun.
        slot: The slot of the memory that it has; None before it has begun.
        wanted: False once the request was cancelled.
        on_step: Called in the worker's thread with the generation that has begun or made a step.
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
        """Have `on_step` see the generation, which does not end if that raises."""
        if self.on_step is not None and self.state is not None:
            with suppress(Exception):
                self.on_step(self.state)

    def give(self, chunks: Sequence[Chunk]) -> None:
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

    def end(self, ending: Generation | BaseException) -> None:
        """End the request with its generation, or with an error."""
        with self._lock:
            self._ending = ending
            waiters, self._waiters = self._waiters, []
            callbacks, self._callbacks = self._callbacks, []
        _call(waiters)  # before the callbacks: these may take a while
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
        """While a `with` statement lasts: call `wake` when the request has ended, or at once if it
        has ended already."""
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
        """Have `callback`, which raises nothing in the worker's thread, called there when the
        request has ended, or here at once if it has ended already."""
        with self._lock:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback()

    def take(self, wake: Wake) -> list[Chunk] | None:
        """Return the chunks not yet taken. If there are none: None after the request's end; before
        it [], and `wake` is called once, from any thread, when there is something new.

        Raises the error that ended the request, once all chunks were taken.
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
        """Return what was generated so far; None before the request has begun. May wait for a
        round."""
        if isinstance(self._ending, Generation):
            return self._ending
        return None if self.state is None else self.state.result()

    def _wake(self) -> None:
        with self._lock:
            wakes, self._wakes = self._wakes, []
        _call(wakes)


def _call(wakes: Iterable[Wake]) -> None:
    for wake in wakes:
        with suppress(Exception):  # raised by a closed event loop, say, which has no readers left
            wake()
