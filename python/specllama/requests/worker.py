"""The thread that drives a session for requests from any thread."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol, runtime_checkable

from specllama import _core
from specllama._core import Chunk
from specllama._process import ProcessGuard
from specllama.errors import BusyError, ClosedError, QueueFullError
from specllama.requests.queue_load import QueueLoad, ThroughputMeter
from specllama.requests.queued_request import QueuedRequest
from specllama.requests.stream import Generation
from specllama.requests.wakeup import Wakeup

_LEAST_COMMON = 32
"""Shortest common beginning of two prompts, in tokens, for one request to wait for the other."""


@runtime_checkable
class RemoteBackend(Protocol):
    """A session of the core whose rounds wait for a server (see the folder remote/)."""

    def hang_up(self) -> None:
        """Make the current rounds fail at once, and all later ones. Any thread may call this."""


class Worker:
    """A thread that runs up to n_seq requests at once.

    The other requests wait and begin in the order in which they were submitted. Only a request
    whose prompt begins like one that is being decoded waits longer, so that the common part is
    decoded once.

    The thread starts with the first request, and only this thread uses the core. Other threads
    communicate with it through the queue and `QueuedRequest.wanted`, which it reads between two
    rounds. An error ends the request that caused it; an error that interrupts a round ends all
    requests of the round. This is true for any BaseException: a drafter's SystemExit does not end
    the thread.

    In the submitting threads, Ctrl-C may raise anywhere. So they take the lock only by `with` (see
    `QueuedRequest`), wait by `Wakeup`, and call `wake` before they change the condition that is
    waited for. Only the worker's thread, which gets no signals, ends requests.

    Args:
        backend: The session.
        max_queue: Maximum number of requests that may wait while n_seq are running.
    """

    def __init__(self, backend: _core.Session, max_queue: int) -> None:
        self._backend = backend
        self._process = ProcessGuard()
        self._n_seq = backend.n_seq
        self._max_queue = max_queue
        self._lock = threading.RLock()  # reentrant: collecting a session calls close anywhere
        self._news = Wakeup()
        self._for_room: list[Wakeup] = []
        self._waiting: deque[QueuedRequest] = deque()
        self._running: list[QueuedRequest] = []
        self._thread: threading.Thread | None = None
        self._started = False
        self._closed = False
        self._n_tokens = 0
        self._meter = ThroughputMeter()

    @property
    def load(self) -> QueueLoad:
        """The load of the thread. Reading it never waits."""
        return QueueLoad(
            n_waiting=len(self._waiting),
            n_running=len(self._running),
            slots=self._slots(),
            generated_tokens=self._n_tokens,
            tokens_per_second=self._meter.tokens_per_second,
        )

    def _slots(self) -> frozenset[int]:
        return frozenset(job.slot for job in tuple(self._running) if job.slot is not None)

    @property
    def is_this_thread(self) -> bool:
        """Whether the calling thread is the worker's own."""
        return threading.current_thread() is self._thread

    def check_process(self) -> None:
        """Raise ClosedError in a forked process, which does not have the thread."""
        self._process.check()

    def check_may_wait(self) -> None:
        """Raise BusyError if the calling thread would wait for itself: the worker's own thread, or
        one in which a drafter is running. Also raises the error of `check_process`."""
        self.check_process()
        if self._backend.entered or self.is_this_thread:
            raise BusyError("A drafter, or a callback, may not wait for its own session.")

    def submit(self, job: QueuedRequest, *, wait: bool = False, over_limit: bool = False) -> None:
        """Queue a request.

        Args:
            job: The request.
            wait: Whether to wait until there is room in the queue.
            over_limit: Accept it even if the queue is full, because another request of its group
                has already been accepted.

        Raises:
            QueueFullError: There is no room.
            ClosedError: The worker has been closed, or this is a forked process.
            BusyError: The calling thread would wait for itself; see `check_may_wait`.
        """
        self.check_process()
        if not wait:
            if not self._take(job, over_limit):
                raise QueueFullError(
                    f"{self._n_seq} requests are running and {self._max_queue} are waiting; try "
                    "again later, or raise max_queue."
                )
            return
        self.check_may_wait()
        room = Wakeup()
        try:
            self._for_room.append(room)
            while not self._take(job, over_limit):
                room.wait()
        finally:
            self._for_room.remove(room)

    def _take(self, job: QueuedRequest, over_limit: bool) -> bool:
        """Put a request into the queue if there is room; return whether there was."""
        with self._lock:
            if self._closed:
                raise ClosedError("The session is closed; open a new one.")
            if not (over_limit or self._has_room()):
                return False
            self._start()
            self._wake()
            self._waiting.append(job)
        return True

    def _has_room(self) -> bool:
        n_waiting = sum(job.wanted for job in self._waiting)
        return n_waiting + len(self._running) < self._n_seq + self._max_queue

    def _start(self) -> None:
        """Start the thread at the first request. If Ctrl-C interrupts this, it is unknown whether
        the thread runs: the next request starts another one, and `_run` ends all but the last."""
        if self._started:
            return
        # A daemon, so that a process may end with unfinished requests; the session's finalizer
        # makes sure that the thread has left the core by then.
        self._thread = threading.Thread(target=self._run, name="specllama", daemon=True)
        self._thread.start()
        self._started = True

    def _wake(self) -> None:
        """Wake the thread, and the callers that wait for room. They check when the lock is free, so
        change the state after this call, under the same lock."""
        self._news.wake()
        for room in tuple(self._for_room):  # a copy: waiting callers change it without the lock
            room.wake()

    def cancel(self, job: QueuedRequest) -> None:
        """End a request before the next round. If it has not begun, its place in the queue is free
        at once. In a forked process this does nothing."""
        if not self._process.is_here:  # the lock may be held by a thread of the parent process
            return
        with self._lock:
            self._wake()
            job.wanted = False

    def wait_for_cancelled(self) -> None:
        """Wait until cancelled requests have left the core. Does nothing in a thread that would
        wait for itself, or in a forked process."""
        if not self._process.is_here or self._backend.entered or self.is_this_thread:
            return
        with self._lock:
            leaving = [job for job in (*self._running, *self._waiting) if not job.wanted]
        for job in leaving:
            left = Wakeup()
            with job.awaited(left.wake):
                left.wait()

    def close(self) -> None:
        """End all requests and the thread after the current round. A round that waits for a server
        is interrupted. Closing twice is allowed; in a forked process this does nothing."""
        if not self._process.is_here:
            return
        with self._lock:
            self._wake()
            self._closed = True
        # Dropping the last reference to a session closes it. That may happen in a callback in the
        # worker's thread, or in a drafter for which that thread waits.
        if self._started and not (self.is_this_thread or self._backend.entered):
            assert self._thread is not None
            if isinstance(self._backend, RemoteBackend):
                self._backend.hang_up()
            self._thread.join()

    def _run(self) -> None:
        with self._lock:
            if not self.is_this_thread:
                return
            self._started = True
        try:
            while self._has_work():
                began, n_before = monotonic(), self._n_tokens
                self._cancel_unwanted()
                self._admit()
                self._step()
                self._meter.add(self._n_tokens - n_before, monotonic() - began)
        finally:
            self._end_all()

    def _has_work(self) -> bool:
        while True:
            with self._lock:
                if self._closed or self._running or self._waiting:
                    return not self._closed
            self._news.wait()

    def _cancel_unwanted(self) -> None:
        with self._lock:
            never = [job for job in self._waiting if not job.wanted]
            for job in never:
                self._waiting.remove(job)
        for job in never:
            job.end(ClosedError("The request was cancelled before it had begun."))
        for job in [job for job in self._running if not job.wanted]:
            assert job.state is not None
            try:
                job.state.stream.cancel()
            except BaseException as error:  # raised by a drafter's `end`
                self._end(job, error)
            else:
                self._collect(job)

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self._n_seq:
            read, in_use = self._being_read(), self._slots()
            with self._lock:
                place = next(
                    (
                        i
                        for i, job in enumerate(self._waiting)
                        if job.wanted
                        and job.request.options["id_slot"] not in in_use
                        and not _waits_for_prefix(job.prompt, read)
                    ),
                    None,
                )
                if place is None:
                    return
                job = self._waiting[place]
                del self._waiting[place]
                self._running.append(job)
            try:
                job.state = job.request.begin(self._backend)
                job.slot = job.state.stream.stats.slot
                job.see()
                if job.request.verification is not None:  # its chunks include earlier tokens
                    self._n_tokens -= len(job.request.verification.generated)
            except BusyError as error:
                # A stream of the session has the slot. With n_seq > 1, each step also advances the
                # stream, so the slot will become free.
                if self._n_seq > 1:
                    with self._lock:
                        self._running.remove(job)
                        self._waiting.insert(place, job)
                    return
                self._end(job, error)
            except BaseException as error:
                self._end(job, error)

    def _being_read(self) -> list[tuple[array[int], int]]:
        """Return the prompts that are being decoded, each with the number of tokens decoded so far.

        Call it without the lock, because the core may be busy with a stream.
        """
        return [
            (job.prompt, job.state.stream.n_prefilled)
            for job in self._running
            if job.state is not None and job.state.stream.in_prompt
        ]

    def _step(self) -> None:
        if not self._running and not self._waiting:
            return  # if a stream is open, its reader advances it
        try:
            self._backend.step()
        except BaseException as error:
            for job in list(self._running):
                self._end(job, error)
        for job in list(self._running):
            self._collect(job)

    def _collect(self, job: QueuedRequest) -> None:
        """Give a request its new chunks, and release it if it has ended."""
        assert job.state is not None
        try:
            job.see()
            chunks = job.state.take()
            result = None
            if job.state.stream.done:
                job.state.end()
                result = job.state.result()
            if chunks:  # only the last chunk may be without a token
                self._n_tokens += len(chunks) - (chunks[-1].token is None)
            if result is None:
                job.give(chunks)
        except BaseException as error:
            self._end(job, error)
            return
        if result is not None:
            self._end(job, result, chunks)

    def _end(
        self, job: QueuedRequest, ending: Generation | BaseException, last: Sequence[Chunk] = ()
    ) -> None:
        """Release a request, and only then give it its last chunks: their reader must find that the
        request has ended."""
        with self._lock:
            self._wake()
            self._running.remove(job)
        if isinstance(ending, BaseException):
            _leave(job)
        job.give(last)
        job.end(ending)

    def _end_all(self) -> None:
        with self._lock:
            self._wake()
            self._closed = True
            jobs = [*self._running, *self._waiting]
            self._waiting.clear()
            self._running.clear()
        for job in jobs:
            _leave(job)
            job.end(ClosedError("The session was closed before the request had ended."))


def _leave(job: QueuedRequest) -> None:
    """Remove a request from the core, whatever its drafter raises when it is notified."""
    if job.state is not None:
        with suppress(BaseException):
            job.state.stream.cancel()


def _waits_for_prefix(mine: array[int], read: Iterable[tuple[array[int], int]]) -> bool:
    """Return whether a request should wait: its prompt begins with a large part of a prompt that is
    still being decoded, so waiting avoids decoding that part twice.

    Args:
        mine: The request's prompt.
        read: The prompts that are being decoded, each with the number of tokens decoded so far.
    """
    for prompt, n_read in read:
        n = min(_n_common(mine, prompt), len(mine) - 1)
        if n > n_read and n >= max(len(prompt) // 2, _LEAST_COMMON):
            return True
    return False


def _n_common(prompt: array[int], other: array[int]) -> int:
    """Return the length of the common beginning of two prompts."""
    n = min(len(prompt), len(other))
    return bisect(range(1, n + 1), False, key=lambda i: prompt[:i] != other[:i])
