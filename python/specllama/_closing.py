"""What is closed at the end of a `with` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod

from typing_extensions import Self


class Closing(ABC):
    """Something that holds what must be let go: `with` closes it, whatever happens inside."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
