"""Measures contestants against plain decoding, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specllama._core import RoundTrace
from specllama.bench.arithmetic import (
    decode_curve,
    median_interval,
    oracle_speed,
    promised_speed,
)
from specllama.bench.contestants import Contestant, Who
from specllama.bench.workload import Task, Workload
from specllama.measure.sequences import first_difference, repeated_share
from specllama.requests.stream import Generation
from specllama.session import SpecSession
from specllama.theory import DecodeTimes


@dataclass(frozen=True)
class Score:
    """The result of a contestant on a workload.

    Attributes:
        contestant: Its name.
        drafter: The drafter; None: plain decoding.
        spec_length: Tokens of a draft; None: planned, or plain decoding.
        tokens_per_second: Speed after the prefill, median of the runs.
        ratio: Speed relative to plain decoding in the same turn, median of the runs.
        low, high: A 95 % confidence interval of `ratio`.
        first_token_ratio: Time to the first token relative to plain decoding in the same turn,
            median of the runs. It includes the prefill of the whole prompt: nothing of it is in the
            target's KV memory when a run begins. It does not include reading the prompt for
            n-grams, which takes almost no time, and the draft model's own prefill, which comes
            later.
        acceptance_rate: Share of draft tokens accepted.
        drafted_per_round: Tokens drafted per target decode.
        tokens_per_round: Tokens generated per target decode.
        bound_share: `ratio` as a share of the oracle's ratio with the n-gram drafter's drafts
            (`specllama.theory.oracle_bound`). v(n) / v(1) comes from the decodes of all contestants
            in these runs. So the oracle's rounds are not wider than the widest real one, and a slow
            moment of the machine changes the bound a little. None for draft models and with a
            corpus, which have other drafts.
        promised: Ratio to plain decoding that Theorem 3.8 predicts for a draft model, with v(n) as
            above and its own alpha and d. For drafts of N tokens it uses the results of model-N in
            these runs; for model and cascade it is the best of these, or 1. None without a draft
            model, or without a contestant model-N.
        first_difference: Index of the first token that differs from plain decoding, in the first
            text with a difference; None if all are equal.
    """

    contestant: str
    drafter: Who | None
    spec_length: int | None
    tokens_per_second: float
    ratio: float
    low: float
    high: float
    first_token_ratio: float
    acceptance_rate: float
    drafted_per_round: float
    tokens_per_round: float
    bound_share: float | None
    promised: float | None
    first_difference: int | None


@dataclass(frozen=True)
class Result:
    """The result of a workload.

    Attributes:
        workload: Its name.
        kind: "replayed", "generated" or "answered".
        n_texts: Number of its texts.
        n_tokens: Tokens of all texts, by plain decoding.
        repeated: Share of the texts' 4-grams that occurred before in the same text. With greedy
            decoding, small models repeat themselves, which favours n-grams; this shows how much.
        scores: One per contestant, plain first.
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
    """Run all texts of a workload `repeat` times, each with every session in turn, after one
    unmeasured turn. With several texts, a session never runs the same text twice in a row, because
    it would know more about the text than in normal use.

    Args:
        workload: The texts to run.
        contestants: The contestants, plain first.
        sessions: Their sessions, in the same order.
        n_tokens: Maximum number of tokens of each text.
        repeat: Measured turns.
        bounded: Whether n-gram contestants have only the n-gram drafter's drafts. With a corpus
            they have others, and the bound would be wrong.
    """
    prompts = [task.prompt_tokens(sessions[0]) for task in workload.tasks]
    # [contestant][run]: one run of each text, then the next run of each.
    runs: list[list[Generation]] = [[] for _ in contestants]
    for turn in range(repeat + 1):
        for task, prompt in zip(workload.tasks, prompts, strict=True):
            for session, mine in zip(sessions, runs, strict=True):
                generation = _run(session, task, prompt, n_tokens)
                if turn > 0:
                    mine.append(generation)
    plain = runs[0]
    texts = [(prompt, one.tokens) for prompt, one in zip(prompts, plain, strict=False)]
    believed = [mine[-1].stats.decode_seconds for mine in runs]
    # The round that ends a prefill has no decode of its own.
    v = decode_curve(
        (
            (len(one.draft) + 1, one.decode_seconds)
            for mine in runs
            for one in _rounds(mine)
            if one.decode_seconds > 0
        ),
        before=next(filter(None, believed), []),
    )
    bound = oracle_speed(texts, v)
    promises = _promises(contestants, runs, v)
    scores = [
        _score(
            contestant,
            mine,
            plain,
            bound=bound if bounded and not contestant.has_model else None,
            promised=promises.get(contestant.name),
        )
        for contestant, mine in zip(contestants, runs, strict=True)
    ]
    fixed = [score for score in scores if score.spec_length is not None]
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


def _run(session: SpecSession, task: Task, prompt: list[int], n_tokens: int) -> Generation:
    # The KV memory has the previous text, which may begin like this one. Replace it by a short text
    # with another beginning.
    session.generate([1 if prompt[:1] == [0] else 0], max_tokens=1)
    if task.reference is not None:
        text = session.tokenize(task.reference, add_special=False)[:n_tokens]
        return session.replay(prompt, text, trace=True)
    return session.generate(
        prompt, max_tokens=n_tokens, temperature=task.temperature, seed=task.seed, trace=True
    )


def _rounds(runs: Iterable[Generation]) -> Iterator[RoundTrace]:
    for generation in runs:
        assert generation.trace is not None  # it was requested
        yield from generation.trace.rounds


def _promises(
    contestants: Sequence[Contestant], runs: Sequence[list[Generation]], v: DecodeTimes
) -> dict[str, float]:
    """Return the promised ratio by contestant."""
    promises: dict[str, float] = {}
    for contestant, mine in zip(contestants, runs, strict=True):
        if contestant.drafter == "model" and contestant.fixed_length is not None:
            promised = _promise(mine, contestant.fixed_length, v)
            if promised is not None:
                promises[contestant.name] = promised
    if promises:
        best = max(1.0, *promises.values())  # the best gamma may be 0
        promises |= {
            one.name: best for one in contestants if one.has_model and one.fixed_length is None
        }
    return promises


def _promise(mine: Sequence[Generation], gamma: int, v: DecodeTimes) -> float | None:
    steps = [one.draft_seconds / len(one.draft) for one in _rounds(mine) if one.draft]
    if not steps:
        return None
    rounds = [one for generation in mine for one in generation.stats.by_round]
    # The median, because in the first round of a text the draft model also reads the prompt.
    return promised_speed(rounds, gamma, v, statistics.median(steps))


def _score(
    contestant: Contestant,
    mine: Sequence[Generation],
    plain: Sequence[Generation],
    *,
    bound: float | None,
    promised: float | None,
) -> Score:
    speeds = [one.stats.tokens_per_second for one in mine]
    # A text that ends with its first token has no speed.
    ratios = [
        speed / other.stats.tokens_per_second
        for speed, other in zip(speeds, plain, strict=True)
        if speed > 0 and other.stats.tokens_per_second > 0
    ]
    ratio, low, high = median_interval(ratios or [1.0])
    waits = [
        a.stats.seconds.prefill / b.stats.seconds.prefill for a, b in zip(mine, plain, strict=True)
    ]
    differences = (first_difference(a.tokens, b.tokens) for a, b in zip(mine, plain, strict=True))
    drafted = sum(one.stats.drafted for one in mine)
    rounds = sum(one.stats.rounds for one in mine)
    return Score(
        contestant=contestant.name,
        drafter=contestant.drafter,
        spec_length=contestant.fixed_length,
        tokens_per_second=statistics.median(speeds),
        ratio=ratio,
        low=low,
        high=high,
        first_token_ratio=statistics.median(waits),
        acceptance_rate=sum(one.stats.accepted for one in mine) / max(drafted, 1),
        drafted_per_round=drafted / max(rounds, 1),
        tokens_per_round=sum(one.stats.generated_tokens for one in mine) / max(rounds, 1),
        bound_share=None if bound is None else ratio / bound,
        promised=promised,
        first_difference=next((i for i in differences if i is not None), None),
    )
