"""Results as text."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence

from specllama.bench import throughput
from specllama.bench.mean import Mean, MeanScore
from specllama.bench.measuring import Result, Score
from specllama.bench.simulating import Simulation
from specllama.bench.throughput import Throughput

COLUMNS = {
    "contestant": 10,
    "tokens/s": 10,
    "ratio": 8,
    "(95 %)": 14,
    "first token": 13,
    "accepted": 10,
    "tokens/round": 14,
    "of the bound": 14,
    "of the promise": 18,
}
"""The columns of `cells`, and their widths in characters."""

_SERVED = {
    "contestant": 26,
    "tokens/s": 10,
    "ratio": 9,
    "(95 %)": 14,
    "accepted": 10,
    "tokens/round": 14,
    "as plain": 12,
}
"""The columns of `served`, and their widths."""

SIMULATED_HEAD = (
    "curve        workload       ngram   best fixed          best of the peers'    of the bound"
)


def about(result: Result) -> str:
    """Describe the workload in one line."""
    texts = "1 text" if result.n_texts == 1 else f"{result.n_texts} texts"
    return (
        f"{result.workload} ({result.kind}): {texts}, {result.n_tokens} tokens, "
        f"{100 * result.repeated:.1f} % repeated 4-grams"
    )


def cells(score: Score) -> list[str]:
    """Return the result of a contestant, one text for each of `COLUMNS`."""
    bound, promised = score.bound_share, score.promised
    return [
        score.contestant,
        f"{score.tokens_per_second:.1f}",
        f"{score.ratio:.2f}x",
        f"{score.low:.2f}..{score.high:.2f}",
        f"{score.first_token_ratio:.2f}x",
        f"{100 * score.acceptance_rate:.1f} %",
        f"{score.tokens_per_round:.2f}",
        "" if bound is None else f"{100 * bound:.1f} %",
        "" if promised is None else f"{100 * score.ratio / promised:.1f} % of {promised:.2f}x",
    ]


def tokens_note(score: Score, kind: str) -> str:
    """Return whether the tokens are those of plain decoding; "" if they are by definition."""
    if score.first_difference is not None:
        return f"tokens differ from {score.first_difference} on"
    return "tokens equal" if kind != "replayed" and score.contestant != "plain" else ""


def best(result: Result) -> str:
    """Return a line about the best fixed draft length; "" if there was none."""
    if result.best_fixed is None:
        return ""
    ratios = {score.contestant: score.ratio for score in result.scores}
    line = f"best fixed: {result.best_fixed}"
    for name in ("ngram", "cascade"):
        if name in ratios:
            line += f"; {name} is {ratios[name] / ratios[result.best_fixed]:.2f} x as fast"
    return line


def head() -> str:
    """Return the line over `measured`."""
    return _line(list(COLUMNS), COLUMNS)


def measured(result: Result) -> str:
    """Return a workload's lines under `head`."""
    lines = [about(result)]
    for score in result.scores:
        lines.append(f"{_line(cells(score), COLUMNS)}   {tokens_note(score, result.kind)}".rstrip())
    if text := best(result):
        lines.append(f"  {text}")
    return "\n".join(lines)


def mean_cells(score: MeanScore) -> list[str]:
    """Return the result of a contestant over all workloads, one text for each of `COLUMNS`."""
    known = {
        "contestant": score.contestant,
        "ratio": f"{score.ratio:.2f}x",
        "first token": f"{score.first_token_ratio:.2f}x",
    }
    return [known.get(name, "") for name in COLUMNS]


def mean(mean: Mean) -> str:
    """Return the last lines of a table of several workloads."""
    rows = [_line(mean_cells(score), COLUMNS).rstrip() for score in mean.scores]
    return "\n".join([about_mean(mean), *rows])


def about_mean(mean: Mean) -> str:
    """Describe the means in one line."""
    return f"geometric mean of {mean.n_workloads} workloads"


def served(result: Throughput) -> str:
    """Return the results of many requests as a table."""
    lines = [
        f"{result.n_requests} requests, {result.n_prompt_tokens} tokens of prompts, "
        f"{result.n_tokens} generated, {100 * result.repeated:.1f} % repeated 4-grams; "
        "ratios to plain with one after another",
        "",
        _line(list(_SERVED), _SERVED),
    ]
    for n, scores in itertools.groupby(result.scores, key=lambda one: one.n_at_once):
        lines.append(f"{n} at once")
        lines += [_line(_served_cells(one, result.n_requests), _SERVED) for one in scores]
        lines += [
            f"  {one.contestant} is {one.ratio:.2f} x ({one.low:.2f}..{one.high:.2f}) as fast as "
            f"the best of llama-server, {one.best}"
            for one in result.comparisons
            if one.n_at_once == n
        ]
    return "\n".join(lines)


def _served_cells(score: throughput.Score, n_requests: int) -> list[str]:
    return [
        score.contestant,
        f"{statistics.median(score.speeds):.1f}",
        f"{score.ratio:.2f}x",
        f"{score.low:.2f}..{score.high:.2f}",
        f"{100 * score.acceptance_rate:.1f} %",
        f"{score.tokens_per_round:.2f}",
        f"{score.n_equal} of {n_requests}",
    ]


def _line(texts: Sequence[str], columns: Mapping[str, int]) -> str:
    first, *others = zip(texts, columns.values(), strict=True)
    return f"  {first[0]:<{first[1]}}" + "".join(f"{text:>{width}}" for text, width in others)


def simulated(simulation: Simulation) -> str:
    """Return a line under `SIMULATED_HEAD`."""
    return (
        f"{simulation.curve:<12} {simulation.workload:<12}{simulation.ngram:>7.2f}x   "
        f"{_best(simulation.fixed):<18}  {_best(simulation.peers):<20}"
        f"{100 * simulation.bound_share:>12.1f} %"
    )


def _best(speeds: Mapping[str, float]) -> str:
    name = max(speeds, key=lambda one: speeds[one])
    return f"{speeds[name]:>5.2f}x {name}"
