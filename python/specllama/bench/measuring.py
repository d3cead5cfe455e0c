"""Contestants measured against plain decoding, taking turns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from specllama.bench.arithmetic import (
    first_difference,
    median_interval,
    oracle_speed,
    relative_curve,
    repeated_share,
)
from specllama.bench.contestants import Contestant
from specllama.bench.workload import Task, Workload
from specllama.session import SpecSession
from specllama.stream import Generation


@dataclass(frozen=True)
class Score:
    """What a contestant did on a workload.

    Attributes:
        contestant: Its name.
        tokens_per_second: After the prefill, median of the runs.
        ratio: To plain in the same turn, median of the runs.
        low, high: A 95 % confidence interval of it.
        acceptance_rate: Share of draft tokens accepted.
        tokens_per_round: Tokens per target decode.
        bound_share: Speed as a share of what the oracle could have made of the n-gram drafter's
            drafts (`specllama.theory.oracle_bound`), both as ratios to plain. v(n) / v(1) is that
            of the decodes of these runs, whoever made them, so the oracle's rounds are no wider
            than any that there was, and a slow moment of the machine moves it a little. None for
            draft models and with a corpus, which have drafts of their own.
        first_difference: Index of the first token that differs from plain's, in the first text
            that has one; None if all are equal.
    """

    contestant: str
    tokens_per_second: float
    ratio: float
    low: float
    high: float
    acceptance_rate: float
    tokens_per_round: float
    bound_share: float | None
    first_difference: int | None


@dataclass(frozen=True)
class Result:
    """A workload, measured.

    Attributes:
        workload: Its name.
        kind: "replayed" or "generated".
        n_texts: Its texts.
        n_tokens: Tokens of all of them, by plain decoding.
        repeated: Share of the texts' 4-grams that had occurred in the same text before. Greedy
            small models loop, which flatters n-grams: this says how much.
        scores: One per contestant, plain the first.
        best_fixed: Name of the fastest contestant with a fixed draft length; None without any.
    """

    workload: str
    kind: str
    n_texts: int
    n_tokens: int
    repeated: float
    scores: list[Score]
    best_fixed: str | None


def measure(
    workload: Workload,
    contestants: Sequence[Contestant],
    sessions: Sequence[SpecSession],
    n_tokens: int,
    repeat: int,
    *,
    bounded: bool = True,
) -> Result:
    """Run every text of a workload `repeat` times with each session in turn, after one unmeasured
    turn.

    Args:
        workload: What to run.
        contestants: Plain the first.
        sessions: Theirs.
        n_tokens: Most tokens of each text.
        repeat: Measured turns.
        bounded: Whether the n-gram drafter's drafts are all that n-gram contestants have: with a
            corpus the bound would be none.
    """
    # [contestant][run], the runs of one text behind each other.
    runs: list[list[Generation]] = [[] for _ in contestants]
    for task in workload.tasks:
        for turn in range(repeat + 1):
            for session, mine in zip(sessions, runs, strict=True):
                generation = _run(session, task, n_tokens)
                if turn > 0:
                    mine.append(generation)
    plain = runs[0]
    texts = [
        (sessions[0].tokenize(task.prompt), plain[i * repeat].tokens)
        for i, task in enumerate(workload.tasks)
    ]
    # The round that ends a prefill has no decode of its own.
    curve = relative_curve(
        (len(one.draft) + 1, one.decode_seconds)
        for mine in runs
        for generation in mine
        if generation.trace is not None
        for one in generation.trace.rounds
        if one.decode_seconds > 0
    )
    bound = oracle_speed(texts, curve)
    scores = [
        _score(
            contestant,
            mine,
            plain,
            bound if bounded and contestant.drafter != "model" else None,
        )
        for contestant, mine in zip(contestants, runs, strict=True)
    ]
    fixed = [score for one, score in zip(contestants, scores, strict=True) if one.is_fixed]
    lengths = [len(tokens) for _, tokens in texts]
    return Result(
        workload=workload.name,
        kind=workload.kind,
        n_texts=len(texts),
        n_tokens=sum(lengths),
        repeated=statistics.fmean(repeated_share(tokens) for _, tokens in texts),
        scores=scores,
        best_fixed=max(fixed, key=lambda score: score.ratio).contestant if fixed else None,
    )


def _run(session: SpecSession, task: Task, n_tokens: int) -> Generation:
    if task.reference is not None:
        text = session.tokenize(task.reference, add_special=False)[:n_tokens]
        return session.replay(task.prompt, text, trace=True)
    return session.generate(
        task.prompt, max_tokens=n_tokens, temperature=task.temperature, seed=task.seed, trace=True
    )


def _score(
    contestant: Contestant,
    mine: Sequence[Generation],
    plain: Sequence[Generation],
    bound: float | None,
) -> Score:
    speeds = [one.stats.tokens_per_second for one in mine]
    # A text that ended with its first token has no speed.
    ratios = [
        speed / other.stats.tokens_per_second
        for speed, other in zip(speeds, plain, strict=True)
        if speed > 0 and other.stats.tokens_per_second > 0
    ]
    ratio, low, high = median_interval(ratios or [1.0])
    differences = (first_difference(a.tokens, b.tokens) for a, b in zip(mine, plain, strict=True))
    drafted = sum(one.stats.drafted for one in mine)
    rounds = sum(one.stats.rounds for one in mine)
    return Score(
        contestant=contestant.name,
        tokens_per_second=statistics.median(speeds),
        ratio=ratio,
        low=low,
        high=high,
        acceptance_rate=sum(one.stats.accepted for one in mine) / max(drafted, 1),
        tokens_per_round=sum(one.stats.generated_tokens for one in mine) / max(rounds, 1),
        bound_share=None if bound is None else ratio / bound,
        first_difference=next((i for i in differences if i is not None), None),
    )
