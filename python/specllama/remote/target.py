"""The interface of a remote target, for all kinds of servers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from typing_extensions import TypedDict, Unpack

from specllama._core import VerifyAnswer, VocabularyTable
from specllama.remote.answer import Description
from specllama.remote.link import Link
from specllama.remote.text import Text

Branch = tuple[int, list[int]]
"""A number of tokens of a draft, and alternative tokens after these."""


class Rounds(Protocol):
    """A text at a target. Any thread may call the methods."""

    def round(self, generated: list[int], draft: list[int], branches: list[Branch]) -> VerifyAnswer:
        """Let the target verify a draft; the first draft of a text is ignored. Raises the errors of
        `Link.post`.

        Args:
            generated: All tokens of the generation so far.
            draft: Tokens that may come next.
            branches: Alternatives to them. A target may ignore any of them.
        """

    def close(self) -> None:
        """Abandon the text."""


class TokenizeOptions(TypedDict):
    """Options of `SpecSession.tokenize`."""

    add_special: bool
    parse_special: bool
    plain: Sequence[tuple[int, int]]


class Target(ABC):
    """A model on a server.

    Args:
        link: The link to the server; closed with the target.

    Attributes:
        url: The server's address.
        about: The description of the model.
        table: Its vocabulary.
    """

    about: Description
    table: VocabularyTable

    def __init__(self, link: Link) -> None:
        self._link = link
        self.url = link.url

    @abstractmethod
    def ping(self) -> None:
        """Wait for an answer that takes the server almost no time, to measure the round trip."""

    @abstractmethod
    def tokenize(self, text: str, **options: Unpack[TokenizeOptions]) -> list[int]:
        """Return the token ids of a text."""

    @abstractmethod
    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str:
        """Return the text of token ids."""

    @abstractmethod
    def begin(self, text: Text) -> Rounds:
        """Begin a text, without a request to the server yet. Raises ArgumentError for options that
        this target does not support."""

    def hang_up(self) -> None:
        """See `Link.hang_up`."""
        self._link.hang_up()

    def close(self) -> None:
        """Close all connections."""
        self._link.close()
