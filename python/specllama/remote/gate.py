"""Who may work in a session whose target is elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from specllama.errors import BusyError


class Gate:
    """Lets one call at a time work, by the rules of `_core.Session`: a call waits while another
    works, or is refused, but none is refused because of a brief one, or because of a call that
    `await_present` names.

    Args:
        queues: Whether calls wait.
    """

    def __init__(self, *, queues: bool) -> None:
        self._queues = queues
        self._work = threading.Lock()
        self._brief = threading.RLock()  # held by who tries to be brief, and by who may be refused
        self._inside: set[int] = set()
        self._awaited = False

    @property
    def entered(self) -> bool:
        """Whether the calling thread is inside: its call then comes from a drafter."""
        return get_ident() in self._inside

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Have the calling thread count as inside."""
        entered = self.entered
        self._inside.add(get_ident())
        try:
            yield
        finally:
            if not entered:
                self._inside.discard(get_ident())

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let only this thread work. Raises BusyError."""
        if self.entered:
            raise BusyError("The session is in use by its own drafter.")
        if self._queues:
            self._work.acquire()
        else:
            with self._brief:
                if not self._work.acquire(blocking=self._awaited):
                    raise BusyError("Another thread is inside the session.")
        try:
            with self.inside():
                yield
        finally:
            self._awaited = False
            self._work.release()

    def await_present(self) -> None:
        """Have other calls wait until the call that works now, if any, has ended."""
        self._awaited = self._work.locked()

    @contextmanager
    def brief(self) -> Iterator[bool]:
        """Let this thread do what is over soon, if no thread works; gives whether it may. Never
        waits."""
        if not self._brief.acquire(blocking=False):
            yield False
            return
        try:
            if not self._work.acquire(blocking=False):
                yield False
                return
            try:
                with self.inside():
                    yield True
            finally:
                self._work.release()
        finally:
            self._brief.release()
