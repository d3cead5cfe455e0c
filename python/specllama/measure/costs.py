"""The cost of decodes in sessions on this machine: v(n) of a target, d of a draft model."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.session import SpecSession
from specllama.theory import DecodeTimes

N_TURN = 8
"""Rounds of one width per turn."""


@dataclass(frozen=True)
class Costs:
    """Median times, in seconds.

    Attributes:
        v: Times of target decodes.
        draft_step: d, the time of a draft model for one token; 0 without a draft model.
    """

    v: DecodeTimes
    draft_step: float


class _Noise(Drafter):
    """Drafts `n_tokens` random tokens, so that the width of decodes does not depend on the text."""

    def __init__(self) -> None:
        self.n_tokens = 0
        self.n_vocab = 1
        self._rng = np.random.default_rng(0)

    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> Iterable[int] | None:
        n = min(self.n_tokens, max_tokens)
        return [int(token) for token in self._rng.integers(0, self.n_vocab, n)]


def target_times(
    model: str | os.PathLike[str] | None,
    prompt: Sequence[int],
    n_most: int,
    repeat: int,
    **options: Any,
) -> DecodeTimes:
    """Return v(1) to v(n_most) after a prompt. The widths take turns.

    Args:
        model: As for `SpecSession`.
        prompt: Token ids.
        n_most: Widest decode, 2 to 65.
        repeat: Turns of each width; each is `N_TURN` rounds.
        **options: Options of `SpecSession`.

    Raises:
        ArgumentError: The model ends its text before a round can be timed.
    """
    drafter = _Noise()
    times: dict[int, list[float]] = {n: [] for n in range(1, n_most + 1)}
    with SpecSession(model, drafter, spec_length=n_most - 1, **options) as session:
        drafter.n_vocab = session.n_vocab
        for turn in range(repeat + 1):
            for n, measured in times.items():
                drafter.n_tokens = n - 1
                rounds = list(_rounds(session, prompt, n))
                # The first turn warms up.
                if turn > 0:
                    measured += [verify for verify, _, drafted in rounds if drafted == n - 1]
    return DecodeTimes(_median(measured) for measured in times.values())


def draft_step(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str],
    prompt: Sequence[int],
    repeat: int,
    *,
    at_once: bool = False,
    **options: Any,
) -> float:
    """Return d of a draft model, with the types of its file. It is measured in drafts of 4 tokens
    with a pass for each; or, if one pass drafts all tokens (`at_once`), it is the time of a whole
    draft. Arguments as for `target_times`."""
    times: list[float] = []
    with SpecSession(model, draft, draft_type="keep", spec_length=4, **options) as session:
        for turn in range(repeat + 1):
            rounds = list(_rounds(session, prompt, 5))
            if turn > 0:
                times += [
                    drafting / (1 if at_once else drafted)
                    for _, drafting, drafted in rounds
                    if drafted > 0
                ]
    return _median(times)


def _median(times: Sequence[float]) -> float:
    if not times:
        raise ArgumentError(
            "The model ends its text too soon after this prompt to be timed; give another prompt."
        )
    return statistics.median(times)


def _rounds(
    session: SpecSession, prompt: Sequence[int], n: int
) -> Iterator[tuple[float, float, int]]:
    """Yield, for at most N_TURN rounds of up to `n` tokens: seconds of verifying, seconds of
    drafting, drafted tokens. The first round, in which a draft model reads the prompt, is left
    out."""
    with session.stream(prompt, max_tokens=N_TURN * n, temperature=0.0) as stream:
        before = None
        for _ in stream:
            now = stream.stats
            if before is not None and now.rounds == before.rounds:
                continue
            if before is not None and before.rounds > 1:
                yield (
                    now.seconds.verify - before.seconds.verify,
                    now.seconds.draft - before.seconds.draft,
                    now.drafted - before.drafted,
                )
            if now.rounds > N_TURN:
                return
            before = now
