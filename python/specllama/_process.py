"""The process that a session belongs to, and what forking it does."""

from __future__ import annotations

import ctypes
import os

from specllama import _core
from specllama.errors import ClosedError

_SOFT = 1
"""omp_pause_soft: the threads end, and settings stay."""


class ProcessGuard:
    """The process in which something was made. A process forked from it has its memory, but not
    its threads, and would wait for them for ever."""

    _ends = False

    @classmethod
    def end(cls) -> None:
        """Have `check` refuse from now on, because the process ends."""
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
                "The session belongs to the process that this one was forked from; open another "
                "one here."
            )


def release_helpers_at_fork() -> None:
    """Have a thread that forks release the threads that help it with decodes, which start anew when
    it decodes again. The forked process does not have them, but GCC's OpenMP would wait for them
    there: a session that was opened there would hang. (`multiprocessing` forks by default on Linux
    before Python 3.14.)

    Nothing happens if llama.cpp does without OpenMP, or with one older than 5.0.
    """
    runtime = ctypes.CDLL(_core.__file__)  # in which what it was linked to is found, too
    pause = getattr(runtime, "omp_pause_resource_all", None)
    if pause is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: pause(_SOFT))
