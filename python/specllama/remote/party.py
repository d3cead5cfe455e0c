"""The local side of a generation whose target is elsewhere: its text and its drafters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from specllama import _core
from specllama._core.plan import Planner
from specllama.errors import RemoteError
from specllama.remote.answer import Answer
from specllama.remote.draft import Draft
from specllama.remote.proposing import (
    Custom,
    Drafted,
    DraftModel,
    Proposer,
    draft_sampling,
)
from specllama.remote.tally import Tally
from specllama.remote.text import Text
from specllama.remote.tree import Tree
from specllama.remote.trip import Trip

_MOST_OPENINGS = 8
"""Most openings of a text, besides one for each token that came."""


@dataclass
class Party:
    """A text, and the drafters that draft for it.

    Attributes:
        text: The text.
        url: The address of the target's server.
        planner, trip: Shared by all texts of the session.
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
        self._n_openings = 0

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

    def hear_first(self, answer: Answer, seconds: float) -> list[int]:
        """Take in the answer to an opening, or to a repeated one; return its new tokens. Raises
        RemoteError if the server forgets the text again and again."""
        self._n_openings += 1
        tokens = self._hear(answer, again=True)
        if self._n_openings > _MOST_OPENINGS + len(self.text.generated):
            raise RemoteError(
                f"{self.url} has forgotten the generation {self._n_openings} times, and given "
                f"{len(self.text.generated)} tokens."
            )
        self.tally.prompt(len(tokens), seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
        return tokens

    def hear(self, answer: Answer, draft: Draft, seconds: float) -> list[int]:
        """Take in the answer to a draft; return its tokens."""
        tokens = self._hear(answer, again=False)
        n_accepted = draft.agreed(tokens)
        self.tally.round(Tree(draft, guesses=self.guesses), tokens, seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
            if draft.tokens and n_accepted < len(tokens):
                self.proposer.judge(draft, n_accepted, tokens[n_accepted])
        return tokens

    def _hear(self, answer: Answer, *, again: bool) -> list[int]:
        tokens = self.text.hear(answer, again=again)
        if answer.done:
            self.tally.exact = answer.exact
            self.tally.n_reused = answer.n_reused
        return tokens

    def end(self) -> None:
        """Tell the drafter that the text is over, and keep its errors for the statistics."""
        if self.proposer is not None:
            self.proposer.end()
        if isinstance(self.proposer, Custom):
            self.tally.n_errors = self.proposer.n_errors
            self.tally.last_error = self.proposer.last_error
