"""The report of a round to somebody who drafts elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from specllama._core import Chunk
from specllama.model.core import CoreStream


@dataclass(frozen=True)
class Round:
    """What a generation brought since the previous `Round`.

    Attributes:
        tokens: Tokens that were added. A stop string may take the text's last tokens off again:
            then `n_generated` is less than the number of tokens reported so far.
        n_generated: Number of tokens generated, in all rounds.
        chunks: Text that became certain.
        held: Text after the chunks that is not certain yet, as a stop string may begin in it.
        drafted, accepted: Numbers of draft tokens that were verified, and that were accepted.
        offered, used: The parts of `drafted` and `accepted` that were drafted elsewhere (or by a
            drafter of the caller's own, whose tokens are counted with them).
        seconds: Seconds that prefill and verifying took.
        done: Whether the generation is over.
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
    """Cuts the progress of a generation into rounds. For use in the thread that steps.

    Args:
        n_generated: Number of tokens that an earlier request had generated.
    """

    def __init__(self, n_generated: int) -> None:
        self._n_told = n_generated
        self._seconds = 0.0
        self._drafted = self._accepted = 0
        self._offered = self._used = 0
        self._n_chunks = self._n_characters = 0

    def news(self, core: CoreStream, chunks: list[Chunk]) -> Round | None:
        """Return what is new since the last call; None if nothing is."""
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
