"""The process that a session belongs to."""

from __future__ import annotations

import os

from specllama.errors import ClosedError


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
