"""What is closed at the end of a `with` statement, or of the process."""

from __future__ import annotations

import atexit
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress

from typing_extensions import Self

from specllama.errors import SpecllamaError


class Closing(ABC):
    """Something that holds what must be let go: `with` closes it, whatever happens inside."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_held: weakref.WeakSet[Closing] = weakref.WeakSet()


def close_at_exit(one: Closing) -> None:
    """Close it when the process ends, if it is still there. Metal aborts a process that ends while
    something lies in a GPU's memory, and what a thread or a cycle of references holds Python does
    not collect."""
    _held.add(one)


@atexit.register
def _close_held() -> None:
    for one in list(_held):
        with suppress(SpecllamaError):  # where another thread is inside it stays open
            one.close()
