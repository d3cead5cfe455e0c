"""The acceptance of a draft by position, measured in sessions. This is used for heads and block
drafters: they draft from the target's states, and are right less often at later positions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specllama import theory
from specllama.measure.alpha import Rule
from specllama.session import SpecSession
from specllama.theory import DecodeTimes
from specllama.theory.heads import Drafts


@dataclass(frozen=True)
class Places:
    """The acceptance of a drafter's drafts at a temperature with a rule.

    Attributes:
        drafter: Its name.
        temperature: Temperature of target and drafter.
        acceptance: The rule; at temperature 0 both rules are the same.
        by_place: [i]: share of the tokens at position i of a draft that were accepted, among those
            whose predecessors were.
        tokens_per_round: Mean number of tokens of a round, with the longest possible drafts.
        at_once: Whether one pass drafts all tokens.
    """

    drafter: str
    temperature: float
    acceptance: Rule
    by_place: tuple[float, ...]
    tokens_per_round: float
    at_once: bool

    def best(self, v: DecodeTimes, draft_step: float) -> tuple[int, float]:
        """Return the best length of a draft, and its expected speed relative to plain decoding.

        Args:
            v: Times of the target's decodes.
            draft_step: Time of a pass of the drafter.
        """
        drafts: Drafts = "at once" if self.at_once else "in turn"
        speeds = theory.speedup_of_heads(self.by_place[: len(v) - 1], v, draft_step, drafts)
        length = int(np.argmax(speeds))
        return length, float(speeds[length])


def by_place(rounds: Iterable[tuple[int, int]]) -> tuple[float, ...]:
    """Return the shares of accepted tokens by position, from (drafted, accepted) per round."""
    rounds = list(rounds)
    shares: list[float] = []
    while judged := sum(
        accepted >= len(shares) and drafted > len(shares) for drafted, accepted in rounds
    ):
        shares.append(sum(accepted > len(shares) for _, accepted in rounds) / judged)
    return tuple(shares)


def measure(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str],
    prompts: Sequence[Sequence[int]],
    settings: Sequence[tuple[float, Rule]],
    *,
    name: str,
    at_once: bool,
    longest: int,
    n_tokens: int,
    advance: Callable[[], object] = lambda: None,
    **options: Any,
) -> list[Places]:
    """Generate after each prompt with whole drafts.

    Args:
        model: As for `SpecSession`.
        draft: File of the head or block drafter.
        prompts: Token ids; prompt i is continued with seed i.
        settings: Temperatures and rules.
        name: Name of the drafter in tables.
        at_once: Whether one pass drafts all tokens.
        longest: Maximum number of tokens of a draft.
        n_tokens: Maximum number of tokens of a generation.
        advance: Called after each setting.
        **options: Options of `SpecSession`.
    """
    found = []
    fixed: dict[str, Any] = {"draft_type": "keep", "spec_length": longest, "cascade": False}
    with SpecSession(model, draft, **fixed, **options) as session:
        for temperature, rule in settings:
            runs = [
                session.generate(
                    prompt,
                    max_tokens=n_tokens,
                    temperature=temperature,
                    seed=seed,
                    acceptance=rule,
                ).stats
                for seed, prompt in enumerate(prompts)
            ]
            rounds = sum(run.rounds for run in runs)
            per_round = sum(run.generated_tokens for run in runs) / rounds if rounds else 0.0
            shares = by_place(one for run in runs for one in run.by_round)
            found.append(Places(name, temperature, rule, shares, per_round, at_once))
            advance()
    return found
