"""The process that owns a session, and the effects of forking it."""

from __future__ import annotations

import ctypes
import os

from specllama import _core
from specllama.errors import ClosedError

_SOFT = 1
"""omp_pause_soft: the threads end, and settings stay."""


class ProcessGuard:
    """The process in which an object was made. A forked process has a copy of the memory but not
    the threads, and would wait for them for ever."""

    _ends = False

    @classmethod
    def end(cls) -> None:
        """Let `check` raise from now on, because the process ends."""
        cls._ends = True

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the current process is that process."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise ClosedError if the current process is another one, or ends."""
        if self._ends:
            raise ClosedError("The session is closed, because the process ends.")
        if not self.is_here:
            raise ClosedError(
                "The session belongs to the parent process, from which this one was forked; open "
                "another one here."
            )


def release_helpers_at_fork() -> None:
    """End a thread's OpenMP helper threads before it forks; they start again with its next decode.
    The forked process does not have them, but GCC's OpenMP would wait for them, so a session opened
    there would hang. (`multiprocessing` forks by default on Linux before Python 3.14.)

    Does nothing if llama.cpp was built without OpenMP, or with one older than 5.0.
    """
    runtime = ctypes.CDLL(_core.__file__)  # also finds symbols of the libraries it links
    pause = getattr(runtime, "omp_pause_resource_all", None)
    if pause is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: pause(_SOFT))
