"""Shares the slots of a session among remote generations."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_PATIENCE = 1.0
"""Seconds that a generation keeps its place between two rounds while others wait."""


class Places:
    """Limits the generations that run in turns to the number of places. With more, each round would
    take another generation's memory, whose text would then be decoded again. A generation keeps its
    place between its rounds, unless it pauses while others wait.

    Args:
        n: Number of places.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._since: dict[object, float | None] = {}  # begin of the pause; None: in a round
        self._waiting: deque[asyncio.Event] = deque()

    @asynccontextmanager
    async def round(self, one: object) -> AsyncIterator[None]:
        """Wait until `one` has a place. It is in a round until the `with` statement ends."""
        if one not in self._since:
            await self._wait()
        self._since[one] = None
        try:
            yield
        finally:
            if one in self._since:
                self._since[one] = _now()
                self._wake()

    def leave(self, one: object) -> None:
        """Give up a place, if `one` has one."""
        self._since.pop(one, None)
        self._wake()

    async def _wait(self) -> None:
        turn = asyncio.Event()
        self._waiting.append(turn)
        try:
            while self._waiting[0] is not turn or not self._has_room():
                turn.clear()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(turn.wait(), self._patience())
        finally:
            self._waiting.remove(turn)
            self._wake()

    def _has_room(self) -> bool:
        """Whether a place is free, or can be taken from the generation that has paused the
        longest."""
        if len(self._since) >= self._n:
            if self._patience() != 0:
                return False
            pauses = {one: since for one, since in self._since.items() if since is not None}
            del self._since[min(pauses, key=pauses.__getitem__)]
        return True

    def _patience(self) -> float | None:
        """Seconds until a paused generation must give up its place; None: none is paused."""
        pauses = [since for since in self._since.values() if since is not None]
        return max(min(pauses) + _PATIENCE - _now(), 0) if pauses else None

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].set()


def _now() -> float:
    return asyncio.get_running_loop().time()
