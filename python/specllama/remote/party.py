"""The local side of a generation whose target is elsewhere: its text and its drafters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from specllama import _core
from specllama._core.plan import Planner
from specllama.errors import RemoteError
from specllama.remote.draft import Draft
from specllama.remote.proposing import (
    Custom,
    Drafted,
    DraftModel,
    Proposer,
    draft_sampling,
)
from specllama.remote.prospects import Prospects
from specllama.remote.tally import Tally
from specllama.remote.text import Text
from specllama.remote.tree import Tree
from specllama.remote.trip import Trip
from specllama.remote.usefulness import Heard, Usefulness

T = TypeVar("T")

_MOST_REFERENCE = 64_000
"""Most tokens of a reference that are sent; the last are kept. No answer depends on them, and the
server bounds the size of a request (--max-body)."""


@dataclass
class Party:
    """A text, and the drafters that draft for it.

    Attributes:
        text: The text.
        url: The address of the target's server.
        planner, trip, prospects, usefulness: Shared by all texts of the session.
        longest: Most tokens of a draft's trunk that the target verifies.
        most_nodes: Most tokens of a draft, including those of branches.
        guesses: Most tokens at a position; 1: drafts are chains.
        proposer: Drafter that takes no noticeable time; None: there is none.
        draft_model: Drafts token by token; None: there is none.
        spec_length: Most tokens drafted in a row; None: as many as pay.
        tally: The text's statistics.
    """

    text: Text
    url: str
    planner: Planner
    trip: Trip
    prospects: Prospects
    usefulness: Usefulness
    longest: int
    most_nodes: int
    guesses: int
    proposer: Proposer | None
    draft_model: DraftModel | None
    spec_length: int | None
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.text.seed, len(self.text.prompt))
        self._sampling: _core.SamplingOptions | None = None

    def model_tokens(self, draft: Sequence[int], n: int) -> Iterator[Drafted | None]:
        """Yield the tokens that the draft model adds to a draft, n at most. A step without a token
        yields None; such steps take in the text."""
        assert self.draft_model is not None
        if self._sampling is None:
            self._sampling = draft_sampling(
                self.text.options.sampling, self.text.seed, guesses=self.guesses
            )
        tokens = [*self.text.prompt, *self.text.generated, *draft]
        for drafted in self.draft_model.tokens(tokens, n, self._sampling):
            self.tally.n_draft_decoded += drafted is not None
            yield drafted

    def hear_first(self, told: dict[str, Any], seconds: float) -> list[int]:
        """Take in the answer to an opening, or to a repeated one; return its new tokens."""
        tokens = self._hear(told, again=True)
        self.tally.prompt(len(tokens), seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
        return tokens

    def hear(self, told: dict[str, Any], draft: Draft, seconds: float) -> list[int]:
        """Take in the answer to a draft; return its tokens."""
        tokens = self._hear(told, again=False)
        n_accepted = draft.agreed(tokens)
        self.tally.round(Tree(draft, guesses=self.guesses), tokens, seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
            if draft.tokens and n_accepted < len(tokens):
                self.proposer.judge(draft, n_accepted, tokens[n_accepted])
        return tokens

    @property
    def reference(self) -> dict[str, Any]:
        """The field of an opening with tokens to copy from, for the server's own drafters."""
        tokens = [int(token) for token in self.text.options.reference[-_MOST_REFERENCE:]]
        return {"reference": tokens} if tokens else {}

    def decode_of(self, told: dict[str, Any]) -> tuple[int, float]:
        """Return how many drafted tokens were verified, and the seconds of that decode."""
        return self._understood(lambda: (int(told["drafted"]), float(told["seconds"])))

    def overhear(self, told: dict[str, Any], seconds: float) -> list[int]:
        """Take in rounds that the server made without waiting; return their tokens."""
        tokens = self._hear(told, again=False)
        heard = self._understood(lambda: _heard(told))
        n_accepted = heard.n_accepted
        self.tally.overheard(heard.n_drafted, n_accepted, seconds)
        self.usefulness.hear(heard, self.text.n_tokens, self.trip.seconds)
        self.prospects.heard(heard.n_drafted, n_accepted, len(tokens))
        if self.proposer is not None:
            self.proposer.follow(tokens)
        return tokens

    def _hear(self, told: dict[str, Any], *, again: bool) -> list[int]:
        def hear() -> list[int]:
            tokens = self.text.hear(told, again=again)
            if told["done"]:
                self.tally.exact = told["exact"]
                self.tally.n_reused = told["reused"]
            return tokens

        return self._understood(hear)

    def _understood(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise RemoteError(
                f"{self.url} answered what cannot be understood ({error!r}); is it a server "
                "of this version?"
            ) from None

    def end(self) -> None:
        """Tell the drafter that the text is over, and keep its errors for the statistics."""
        if self.proposer is not None:
            self.proposer.end()
        if isinstance(self.proposer, Custom):
            self.tally.n_errors = self.proposer.n_errors
            self.tally.last_error = self.proposer.last_error


def _heard(told: dict[str, Any]) -> Heard:
    return Heard(
        n_rounds=int(told["rounds"]),
        n_drafted=int(told["drafted"]),
        n_accepted=int(told["accepted"]),
        n_offered=int(told["offered"]),
        n_used=int(told["used"]),
        seconds=float(told["seconds"]),
    )
