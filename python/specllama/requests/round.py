"""What a round gave to somebody who drafts elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from specllama._core import Chunk
from specllama.model.core import CoreStream


@dataclass(frozen=True)
class Round:
    """What came of a generation since the last one of these.

    Attributes:
        tokens: Tokens that were added. The last ones of the text may have been taken off again by a
            stop string: then `n_generated` is less than what was told so far.
        n_generated: Tokens generated, all together.
        chunks: What became certain of the text.
        held: What follows of it and is not: a stop string may begin there.
        drafted, accepted: Tokens of drafts that were verified, and of those, right ones.
        offered, used: Of these, those that were drafted elsewhere (or by a drafter of the caller's
            own, whose tokens count as such).
        seconds: What the model took.
        done: The generation is over.
    """

    tokens: list[int]
    n_generated: int
    chunks: list[Chunk]
    held: str
    drafted: int
    accepted: int
    offered: int
    used: int
    seconds: float
    done: bool


class Rounds:
    """Tells the rounds of a generation one from the other. For the thread that steps.

    Args:
        n_generated: Tokens that an earlier request had generated.
    """

    def __init__(self, n_generated: int) -> None:
        self._n_told = n_generated
        self._seconds = 0.0
        self._drafted = self._accepted = 0
        self._offered = self._used = 0
        self._n_chunks = self._n_characters = 0

    def news(self, core: CoreStream, chunks: list[Chunk]) -> Round | None:
        """Return what is new; None if nothing is."""
        tokens = core.tokens
        done = core.done
        if len(tokens) == self._n_told and not chunks and not done:
            return None
        stats = core.stats
        seconds = stats.seconds.prefill + stats.seconds.verify
        offered, used = stats.by_drafter.get("other", (0, 0))
        news = Round(
            tokens=tokens[self._n_told :],
            n_generated=len(tokens),
            chunks=chunks,
            held=self._held(core, chunks, len(tokens)),
            drafted=stats.drafted - self._drafted,
            accepted=stats.accepted - self._accepted,
            offered=offered - self._offered,
            used=used - self._used,
            seconds=seconds - self._seconds,
            done=done,
        )
        self._n_told, self._seconds = len(tokens), seconds
        self._drafted, self._accepted = stats.drafted, stats.accepted
        self._offered, self._used = offered, used
        return news

    def _held(self, core: CoreStream, chunks: list[Chunk], n_tokens: int) -> str:
        self._n_chunks += len(chunks)
        self._n_characters += sum(len(chunk.text) for chunk in chunks)
        return core.text[self._n_characters :] if self._n_chunks < n_tokens else ""
