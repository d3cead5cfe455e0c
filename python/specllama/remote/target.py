"""The interface of a target elsewhere, whatever serves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specllama import _core
from specllama.remote.answer import Answer, Description
from specllama.remote.draft import Draft
from specllama.remote.party import Party
from specllama.remote.stream import Runner


class Target(Protocol):
    """A model on a server.

    Attributes:
        url: The server's address.
        about: The description of the model.
    """

    @property
    def url(self) -> str: ...
    @property
    def about(self) -> Description: ...

    def ping(self) -> None:
        """Wait for an answer that takes the server no time, to measure the round trip."""

    def tokenize(
        self,
        text: str,
        *,
        add_special: bool,
        parse_special: bool,
        plain: Sequence[tuple[int, int]],
    ) -> list[int]: ...

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str: ...

    def check(self, options: _core.GenerateOptions) -> None:
        """Raise ArgumentError for options that other targets have, but this one does not."""

    def runner(self, party: Party) -> Runner:
        """Return what runs the rounds of a generation."""

    def hang_up(self) -> None:
        """See `Link.hang_up`."""

    def close(self) -> None:
        """Close all connections."""


class Exchange(Protocol):
    """Asks a target about one text. `open` and `verify` raise what `Link.post` raises."""

    def open(self) -> Answer:
        """Open the generation, or open it again after the tokens so far."""

    def verify(self, draft: Draft) -> Answer:
        """Have a draft verified, with as many of its branches as the target can verify."""

    def close(self) -> None:
        """Give the generation up."""
