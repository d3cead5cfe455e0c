"""Who takes part in a generation whose target is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from specllama import _core
from specllama._core import Source
from specllama._core.plan import Evidence, Planner
from specllama.errors import RemoteError
from specllama.remote.proposing import Custom, Draft, DraftModel, Proposer, draft_sampling
from specllama.remote.tally import Tally
from specllama.remote.text import Text
from specllama.remote.trip import Trip


@dataclass
class Party:
    """A text, and who drafts for it.

    Attributes:
        text: The text.
        url: Where its target is.
        planner, trip: Of all texts of the session.
        proposer: Drafts without taking noticeable time; None: nobody does.
        draft_model: Drafts token by token; None: none.
        spec_length: Most tokens drafted; None: as many as pay.
        tally: The text's statistics.
    """

    text: Text
    url: str
    planner: Planner
    trip: Trip
    proposer: Proposer | None
    draft_model: DraftModel | None
    spec_length: int | None
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.text.seed, len(self.text.prompt))
        self._sampling: _core.SamplingOptions | None = None

    def model_tokens(self, draft: Sequence[int], n: int) -> Iterator[tuple[int, Evidence]]:
        """Yield what the draft model adds to a draft, n tokens at most."""
        assert self.draft_model is not None
        if self._sampling is None:
            self._sampling = draft_sampling(self.text.options.sampling, self.text.seed)
        tokens = [*self.text.prompt, *self.text.generated, *draft]
        for token, likely in self.draft_model.tokens(tokens, n, self._sampling):
            self.tally.n_draft_decoded += 1
            yield token, Evidence(Source.model, confidence=likely)

    def hear_first(self, told: dict[str, Any], seconds: float) -> list[int]:
        """Take in the answer that opens a generation, or opens it again."""
        tokens = self._hear(told, again=True)
        self.tally.prompt(len(tokens), seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
        return tokens

    def hear(self, told: dict[str, Any], draft: Draft, seconds: float) -> list[int]:
        """Take in what came of a draft."""
        tokens = self._hear(told, again=False)
        n_accepted = draft.agreed(tokens)
        self.tally.round(draft.evidence, n_accepted, seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
            if draft.tokens and n_accepted < len(tokens):
                self.proposer.judge(draft, n_accepted, tokens[n_accepted])
        return tokens

    def overhear(self, told: dict[str, Any], seconds: float) -> list[int]:
        """Take in what came while drafts were on their way."""
        tokens = self._hear(told, again=False)
        self.tally.overheard(told["drafted"], told["accepted"], seconds)
        if self.proposer is not None:
            self.proposer.follow(tokens)
        return tokens

    def _hear(self, told: dict[str, Any], *, again: bool) -> list[int]:
        try:
            tokens = self.text.hear(told, again=again)
            if told["done"]:
                self.tally.exact = told["exact"]
                self.tally.n_reused = told["reused"]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise RemoteError(
                f"{self.url} answered what cannot be understood ({error!r}); is it a server "
                "of this version?"
            ) from None
        return tokens

    def end(self) -> None:
        """The text is over."""
        if self.proposer is not None:
            self.proposer.end()
        if isinstance(self.proposer, Custom):
            self.tally.n_errors = self.proposer.n_errors
            self.tally.last_error = self.proposer.last_error
