"""`specllama bench`: what speculation is worth on this machine, as a ratio to plain
decoding measured in one process, the contestants taking turns."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from specllama import _arguments, _check
from specllama.errors import ArgumentError
from specllama.session import SpecSession
from specllama.workloads import WORKLOADS


@dataclass(frozen=True)
class Result:
    """One workload, measured.

    Attributes:
        workload: Its name.
        plain: Tokens per second of plain decoding after the prefill, median of the runs.
        speculative: The same with speculation.
        ratio: Median over the pairs of runs of speculative / plain.
        low, high: Smallest and largest ratio of a pair.
        acceptance_rate: Share of draft tokens accepted.
        tokens_per_round: Tokens per target decode.
        repeated: Share of the generated 4-grams that had occurred in the generation before. Greedy
            small models loop, which flatters n-grams: this says how much.
        first_difference: Index of the first token in which the two differ; None if they do not.
    """

    workload: str
    plain: float
    speculative: float
    ratio: float
    low: float
    high: float
    acceptance_rate: float
    tokens_per_round: float
    repeated: float
    first_difference: int | None


def repeated_share(tokens: Sequence[int], order: int = 4) -> float:
    """Return the share of n-grams of `tokens` that occurred before among them."""
    grams = [tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Return the first index at which two sequences differ, None if they are equal."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return None if len(a) == len(b) else min(len(a), len(b))


def measure(
    workload: str, plain: SpecSession, speculative: SpecSession, n_tokens: int, repeat: int
) -> Result:
    """Run a workload `repeat` times with each session in turn, after one unmeasured turn."""
    prompt = WORKLOADS[workload]
    runs: list[tuple[float, float]] = []
    for turn in range(repeat + 1):
        a = plain.generate(prompt, max_tokens=n_tokens)
        b = speculative.generate(prompt, max_tokens=n_tokens)
        if turn > 0:
            runs.append((a.stats.tokens_per_second, b.stats.tokens_per_second))
    ratios = [with_drafts / without for without, with_drafts in runs]
    return Result(
        workload=workload,
        plain=statistics.median(without for without, _ in runs),
        speculative=statistics.median(with_drafts for _, with_drafts in runs),
        ratio=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        acceptance_rate=b.stats.acceptance_rate,
        tokens_per_round=b.stats.tokens_per_round,
        repeated=repeated_share(b.tokens),
        first_difference=first_difference(a.tokens, b.tokens),
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; the exit code."""
    n_tokens = _positive("-n", arguments.n_predict, low=8)
    repeat = _positive("--repeat", arguments.repeat, low=1)
    options = {
        "n_threads": arguments.threads,
        "n_gpu_layers": arguments.n_gpu_layers,
        "kv_type": arguments.kv_type,
        "n_ctx": arguments.ctx_size,
        "progress": True,
    }
    drafter = arguments.draft_model or "ngram"
    with (
        SpecSession(arguments.model, None, **options) as plain,
        SpecSession(
            arguments.model, drafter, spec_length=arguments.spec_length, **options
        ) as speculative,
    ):
        if not arguments.json:
            print(
                f"{plain.model_description}, {plain.n_threads} threads, KV {arguments.kv_type}, "
                f"up to {arguments.spec_length} tokens by {drafter}, {n_tokens} generated tokens, "
                f"median of {repeat} alternating runs\n"
            )
            print(
                "workload   plain t/s   spec t/s   ratio  (low..high)    accepted  tokens/round  "
                "repeated 4-grams"
            )
        for workload in WORKLOADS:
            result = measure(workload, plain, speculative, n_tokens, repeat)
            print(json.dumps(asdict(result)) if arguments.json else _line(result), flush=True)
    return 0


def _line(result: Result) -> str:
    line = (
        f"{result.workload:<9}{result.plain:>11.1f}{result.speculative:>11.1f}"
        f"{result.ratio:>7.2f}x  ({result.low:.2f}..{result.high:.2f})"
        f"{100 * result.acceptance_rate:>11.1f} %{result.tokens_per_round:>13.2f}"
        f"{100 * result.repeated:>15.1f} %"
    )
    if result.first_difference is not None:
        line += f"  tokens differ from {result.first_difference} on"
    return line


def _positive(name: str, value: int, *, low: int) -> int:
    if value < low:
        raise ArgumentError(f"{name} must be at least {low}, not {value}.")
    return _check.integer(name, value)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `bench` to the command line."""
    parser = commands.add_parser(
        "bench", help="measure speculation against plain decoding", description=__doc__
    )
    _arguments.add_models(parser, help="GGUF file (default: the bundled model)")
    parser.add_argument("-n", "--n-predict", type=int, default=128, help="tokens per run (128)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--spec-length", type=int, default=4, help="most drafted tokens (4)")
    parser.add_argument("-t", "--threads", type=int, help="threads (the performance cores)")
    parser.add_argument("-c", "--ctx-size", type=int, help="tokens of context")
    parser.add_argument("-ngl", "--n-gpu-layers", type=int, default=-1, help="GPU layers (all)")
    parser.add_argument("-kv", "--kv-type", default="f16", help="type of the KV memory (f16)")
    parser.add_argument("--json", action="store_true", help="a JSON object per workload")
    parser.set_defaults(run=run)
