"""Results as text."""

from __future__ import annotations

from collections.abc import Mapping

from specllama.bench.measuring import Result, Score
from specllama.bench.simulating import Simulation

MEASURED_HEAD = (
    "workload     contestant   tokens/s   ratio   (95 %)         accepted   tokens/round   "
    "of the bound"
)

SIMULATED_HEAD = (
    "curve        workload        auto   best fixed          best lookup           of the bound"
)


def measured(result: Result) -> str:
    """Return a workload's lines under `MEASURED_HEAD`."""
    texts = "1 text" if result.n_texts == 1 else f"{result.n_texts} texts"
    lines = [
        f"{result.workload} ({result.kind}): {texts}, {result.n_tokens} tokens, "
        f"{100 * result.repeated:.1f} % repeated 4-grams",
        *(_score(score, result.kind) for score in result.scores),
    ]
    ratios = {score.contestant: score.ratio for score in result.scores}
    if result.best_fixed is not None:
        line = f"{'':13}best fixed: {result.best_fixed}"
        if "auto" in ratios:
            line += f"; auto is {ratios['auto'] / ratios[result.best_fixed]:.2f} x as fast"
        lines.append(line)
    return "\n".join(lines)


def _score(score: Score, kind: str) -> str:
    interval = f"({score.low:.2f}..{score.high:.2f})"
    share = "" if score.bound_share is None else f"{100 * score.bound_share:.1f} %"
    line = (
        f"{'':13}{score.contestant:<10}{score.tokens_per_second:>11.1f}{score.ratio:>7.2f}x"
        f"   {interval:<14}{100 * score.acceptance_rate:>7.1f} %{score.tokens_per_round:>15.2f}"
        f"{share:>15}"
    )
    if score.first_difference is not None:
        line += f"   tokens differ from {score.first_difference} on"
    elif kind == "generated" and score.contestant != "plain":
        line += "   tokens equal"
    return line.rstrip()


def simulated(simulation: Simulation) -> str:
    """Return a line under `SIMULATED_HEAD`."""
    return (
        f"{simulation.curve:<12} {simulation.workload:<12}{simulation.auto:>7.2f}x   "
        f"{_best(simulation.fixed):<18}  {_best(simulation.lookup):<20}"
        f"{100 * simulation.bound_share:>12.1f} %"
    )


def _best(speeds: Mapping[str, float]) -> str:
    name = max(speeds, key=lambda one: speeds[one])
    return f"{speeds[name]:>5.2f}x {name}"
