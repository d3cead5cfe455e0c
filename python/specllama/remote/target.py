"""A target elsewhere, whoever serves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from specllama import _core
from specllama.remote.draft import Draft
from specllama.remote.party import Party
from specllama.remote.stream import Way

Mode = Literal["auto", "lockstep", "ahead"]


class About(Protocol):
    """What a target is, by the names of `GET /v1/verify` (docs/remote.md)."""

    def __getitem__(self, name: str) -> Any: ...


class Target(Protocol):
    """A model on a server.

    Attributes:
        url: Where it is.
        about: What it is.
    """

    @property
    def url(self) -> str: ...
    @property
    def about(self) -> About: ...

    def ping(self) -> None:
        """Have something answered that takes no time: the way there and back."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]: ...

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str: ...

    def check(self, options: _core.GenerateOptions) -> None:
        """Raise ArgumentError for options that it does not have and other targets do."""

    def way(self, party: Party, mode: Mode, timeout: float) -> Way:
        """Return how a generation gets on."""

    def close(self) -> None:
        """Close all connections."""


class Exchange(Protocol):
    """Questions about one text, and their answers, which are those of `POST /v1/verify`. Both
    raise what `Link.post` does."""

    def open(self) -> dict[str, Any]:
        """Begin the text, or begin again where it is."""

    def verify(self, draft: Draft) -> dict[str, Any]:
        """Have a draft verified; of its branches as many as the target can."""

    def close(self) -> None:
        """It is not gone on with."""
