"""Speed by draft length, measured and compared with the theory.

(Leviathan et al. 2023: tables 2 and 4, Theorem 3.8.)
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specllama import theory
from specllama.measure.alpha import Rule
from specllama.measure.costs import Costs
from specllama.requests.stream import Generation
from specllama.session import SpecSession

_PLAIN = 0


@dataclass(frozen=True)
class Speed:
    """The speed with one draft length at one temperature.

    Attributes:
        temperature: Temperature of both models.
        acceptance: The rule; at temperature 0 both rules are the same.
        gamma: Maximum number of tokens drafted per round.
        alpha: Share of the tested tokens that were accepted. (Tokens after a rejected one are not
            tested.)
        expected: Theorem 3.8 with the measured v(gamma + 1), d and this alpha.
        measured: Tokens per second relative to plain decoding: the median over turns.
        low, high: The smallest and the largest such ratio of a turn.
    """

    temperature: float
    acceptance: Rule
    gamma: int
    alpha: float
    expected: float
    measured: float
    low: float
    high: float


def alpha_of(by_round: Sequence[tuple[int, int]]) -> float:
    """Return accepted / tested tokens from (drafted, accepted) per round; 0 if none was tested.

    If all tokens have the same alpha, this is its maximum-likelihood estimate.
    """
    accepted = sum(accepted for _, accepted in by_round)
    rejected = sum(accepted < drafted for drafted, accepted in by_round)
    return accepted / (accepted + rejected) if accepted + rejected else 0.0


def measure(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str],
    prompts: Sequence[Sequence[int]],
    settings: Sequence[tuple[float, Rule]],
    costs: Costs,
    *,
    n_tokens: int,
    repeat: int,
    advance: Callable[[], object] = lambda: None,
    **options: Any,
) -> list[Speed]:
    """Generate after each prompt, plainly and with every gamma that `costs` covers, in turns.

    Args:
        model: As for `SpecSession`.
        draft: The draft model.
        prompts: Token ids; prompt i is continued with seed i.
        settings: Temperatures and rules.
        costs: v(1) to v(gamma + 1) for the largest gamma, and d.
        n_tokens: Maximum number of tokens of a generation.
        repeat: Number of turns.
        advance: Called after each gamma of each turn: len(costs.v) * repeat times.
        **options: Options of `SpecSession`.

    Returns:
        For each setting, the speeds with each gamma from 1 on.
    """
    gammas = range(len(costs.v))
    rates: dict[tuple[int, int], list[float]] = {}
    rounds: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for _ in range(repeat):
        for gamma in gammas:
            # A new session each time, so that only one takes memory. The file stays in the page
            # cache.
            drafter = None if gamma == _PLAIN else draft
            with SpecSession(model, drafter, spec_length=max(gamma, 1), **options) as session:
                session.generate(prompts[0], max_tokens=8)
                for i, (temperature, rule) in enumerate(settings):
                    runs = [
                        session.generate(
                            prompt,
                            max_tokens=n_tokens,
                            temperature=temperature,
                            seed=seed,
                            acceptance=rule,
                        )
                        for seed, prompt in enumerate(prompts)
                    ]
                    rates.setdefault((i, gamma), []).append(_rate(runs))
                    rounds[i, gamma] = [one for run in runs for one in run.stats.by_round]
            advance()
    return [
        _speed(setting, gamma, rounds[i, gamma], rates[i, gamma], rates[i, _PLAIN], costs)
        for i, setting in enumerate(settings)
        for gamma in gammas[1:]
    ]


def _rate(runs: Sequence[Generation]) -> float:
    """Return the tokens per second after the prefill, over all runs together."""
    seconds = sum(run.stats.seconds.total - run.stats.seconds.prefill for run in runs)
    return sum(len(run.tokens) for run in runs) / seconds


def _speed(
    setting: tuple[float, Rule],
    gamma: int,
    rounds: Sequence[tuple[int, int]],
    rates: Sequence[float],
    plain: Sequence[float],
    costs: Costs,
) -> Speed:
    temperature, rule = setting
    alpha = alpha_of(rounds)
    expected = theory.measured_improvement_factor(alpha, gamma, costs.v, costs.draft_step)
    ratios = [fast / slow for fast, slow in zip(rates, plain, strict=True)]
    return Speed(
        temperature,
        rule,
        gamma,
        alpha,
        expected,
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )
