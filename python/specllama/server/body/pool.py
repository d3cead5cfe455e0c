"""Threads that process the bodies of requests."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from specllama.server.error import ApiError

T = TypeVar("T")

_N_THREADS = 2
"""More threads would only take processors from the model."""

_SMALL = 1 << 16
"""Bytes. Larger requests leave one thread free for smaller ones."""

_SECONDS = 1.0
_BYTES_PER_SECOND = 1 << 18
"""A request may take `_SECONDS` of processor time, and one more for every `_BYTES_PER_SECOND`.
llama.cpp tokenizes a MiB in half a second for most texts, and in up to five for the worst."""


class _StoppedError(BaseException):
    """Stops work. Not an Exception, because the work may catch that."""


class Pool:
    """Runs work on requests, such as rendering a template or tokenizing, in a few threads outside
    the event loop.

    - Fair: the client with the fewest running requests is next, with its smallest request.
    - Bounded: work that takes too much processor time is stopped; its client gets an error.
    - Cancelled with its client: if the task that waits for work is cancelled, queued work is
      dropped and running work is stopped.

    Work stops at the next Python instruction. So the time of calls into C must be bounded by the
    size of a request, and they must release the GIL.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_N_THREADS, "reading")
        self._waiting: list[_Job[Any]] = []
        self._running: list[_Job[Any]] = []

    async def run(self, work: Callable[[], T], client: str, n_bytes: int) -> T:
        """Return what `work` returns; raise what it raises.

        Args:
            work: A function that may be stopped anywhere: it changes only its own objects.
            client: The request's client.
            n_bytes: Size of the request.

        Raises:
            ApiError: It took too long.
        """
        job = _Job(work, client, n_bytes)
        self._waiting.append(job)
        self._begin_next()
        try:
            return await job.result
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
            job.stop()
            # An error's traceback refers to this frame, which would keep a refused request in
            # memory.
            del job

    def _begin_next(self) -> None:
        while len(self._running) < _N_THREADS:
            n_large = sum(one.n_bytes > _SMALL for one in self._running)
            room = n_large < _N_THREADS - 1
            able = [one for one in self._waiting if one.n_bytes <= _SMALL or room]
            if not able:
                return
            n_running = Counter(one.client for one in self._running)
            job = min(able, key=lambda one: (n_running[one.client], one.n_bytes))
            self._waiting.remove(job)
            self._running.append(job)
            job.begin(self._threads, partial(self._end, job))

    def _end(self, job: _Job[Any]) -> None:
        self._running.remove(job)
        self._begin_next()


class _Job(Generic[T]):
    """Work that runs in a thread and can be stopped there.

    Attributes:
        client: The request's client.
        n_bytes: Size of the request.
        result: The result, or the error.
    """

    def __init__(self, work: Callable[[], T], client: str, n_bytes: int) -> None:
        self.client = client
        self.n_bytes = n_bytes
        self._work = work
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._lock = threading.Lock()
        self._stopped = False
        self._thread: int | None = None  # while it runs
        self._clock: Callable[[], float] = time.monotonic
        self._end = float("inf")  # by that clock

    def begin(self, threads: ThreadPoolExecutor, free: Callable[[], None]) -> None:
        """Begin. When the thread is free, `free` is called in the event loop, before the result is
        set."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._most_seconds, self._check_time)
        threads.submit(self._run, loop, free)

    def stop(self) -> None:
        """Stop the work if it has not ended."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                if self._thread is not None:
                    _raise_in(self._thread, _StoppedError)

    @property
    def _most_seconds(self) -> float:
        return _SECONDS + self.n_bytes / _BYTES_PER_SECOND

    def _check_time(self) -> None:
        if self.result.done():
            return
        if (left := self._end - self._clock()) > 0:
            # A thread that waits for a processor does not use up its time.
            asyncio.get_running_loop().call_later(min(left, 1) + 0.01, self._check_time)
            return
        self.result.set_exception(
            ApiError(
                400,
                f"The request takes more than {self._most_seconds:.1f} s to read; make its texts, "
                "tools or schemas simpler.",
                code="too_expensive",
            )
        )

    def _run(self, loop: asyncio.AbstractEventLoop, free: Callable[[], None]) -> None:
        """Run the work, in a thread. `stop` may raise an exception at any instruction, once, until
        this has the lock at the end."""
        report: Callable[[], None] = lambda: None  # noqa: E731
        try:
            try:
                with self._lock:
                    if self._stopped:
                        raise _StoppedError
                    self._thread = threading.get_ident()
                    self._clock = _processor_clock()
                    self._end = self._clock() + self._most_seconds
                value = self._work()
                report = partial(self._set, value)
            finally:
                with self._lock:
                    self._thread = None
                    _raise_in(threading.get_ident(), None)
        except _StoppedError:
            pass  # nobody waits for the result
        except BaseException as error:
            report = partial(self._fail, error)
        loop.call_soon_threadsafe(self._leave, free, report)
        del report  # its error's traceback refers to this frame

    @staticmethod
    def _leave(free: Callable[[], None], report: Callable[[], None]) -> None:
        free()
        report()

    def _set(self, value: T) -> None:
        if not self.result.done():
            self.result.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)


def _processor_clock() -> Callable[[], float]:
    """Return a clock of the calling thread's processor time; on systems without one, of elapsed
    time."""
    if hasattr(time, "pthread_getcpuclockid"):
        clock = time.pthread_getcpuclockid(threading.get_ident())
        return partial(time.clock_gettime, clock)
    return time.monotonic


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Make a thread raise an exception at its next instruction. None: withdraw one that it has not
    raised yet."""
    given = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)
