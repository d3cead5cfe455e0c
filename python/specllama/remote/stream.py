"""A generation whose target is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from specllama._core import Chunk, RoundTrace, Stats, TokenLogprobs
from specllama.remote.party import Party


class Runner(Protocol):
    """Runs the rounds of a generation."""

    def round(self) -> None:
        """Run one round."""

    def close(self) -> None:
        """Leave the generation; the server need not keep it."""


class RemoteStream:
    """The same interface as `_core.Stream`.

    Args:
        party: The text and its drafters.
        runner: Runs the rounds.
        advance: Makes the session run a round of at least one stream.
        retire: Makes the session end abandoned streams, as soon as no thread is at work in it.
        ended: Called with this stream when it is over.
    """

    def __init__(
        self,
        party: Party,
        runner: Runner,
        advance: Callable[[], object],
        retire: Callable[[], object],
        ended: Callable[[RemoteStream], object],
    ) -> None:
        self._party = party
        self._runner = runner
        self._advance = advance
        self._retire = retire
        self._ended = ended
        self._error: Exception | None = None
        self._abandoned = False
        self._over = False
        self._left = False

    def round(self) -> None:
        """Run one round. An error ends the stream; its reader gets it from `take`."""
        try:
            self._runner.round()
        except Exception as error:
            self._error = error
            self._party.text.end(None)
        finally:  # also after an interrupt
            if self._party.text.done:
                self._leave()

    def end(self, error: Exception | None = None) -> None:
        """End the stream where it is; `take` then raises `error`. Must not be called in a round."""
        if not self._party.text.done:
            self._error = error
            self._party.text.end(None)
        self._leave()

    def step(self) -> list[Chunk] | None:
        if self.done:
            return None
        if not self._party.text.chunks and not self._party.text.done:
            self._advance()
        return self.take()

    def advance(self) -> bool:
        return self.step() is not None

    def take(self) -> list[Chunk]:
        error, self._error = self._error, None
        if error is not None:
            raise error
        chunks, self._over = self._party.text.take()
        return chunks

    def cancel(self) -> None:
        self._abandoned = True
        self._retire()

    @property
    def abandoned(self) -> bool:
        """Whether the stream was cancelled and is to end."""
        return self._abandoned

    def _leave(self) -> None:
        if self._left:
            return
        self._left = True
        try:  # an interrupt may come anywhere, but must not keep its place taken
            self._runner.close()
        finally:
            try:
                self._party.end()
            finally:
                self._ended(self)

    @property
    def done(self) -> bool:
        return self._over

    @property
    def finish_reason(self) -> Literal["stop", "length"] | None:
        return self._party.text.finish_reason

    @property
    def stop_string(self) -> str:
        return self._party.text.stop_string

    @property
    def in_prompt(self) -> bool:
        return self._party.tally.n_rounds == 0

    @property
    def n_prefilled(self) -> int:
        return 0 if self.in_prompt else len(self._party.text.prompt)

    @property
    def tokens(self) -> list[int]:
        return list(self._party.text.generated)

    @property
    def text(self) -> str:
        return self._party.text.text

    @property
    def logprobs(self) -> list[TokenLogprobs]:
        return list(self._party.text.logprobs)

    @property
    def stats(self) -> Stats:
        planner = self._party.planner
        step = planner.draft_cost.seconds(1) if self._party.tally.n_draft_decoded else 0.0
        return self._party.tally.stats(
            len(self._party.text.generated), list(planner.cost.points().seconds), step
        )

    @property
    def trace(self) -> list[RoundTrace]:
        return []
