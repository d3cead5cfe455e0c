"""`specllama divergence`: where speculative decoding gives other tokens than plain decoding.

In the exact configuration it does not. Elsewhere a decode of several tokens, or for several
requests, rounds its sums in another order than one of a single token, and where two tokens are
nearly tied the other one may win: this counts how often, and how near the ties were."""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from tqdm import tqdm

from specllama import _arguments, _check
from specllama.bench import first_difference
from specllama.errors import ArgumentError
from specllama.session import SpecSession
from specllama.stream import Generation
from specllama.workloads import REPLAYED, longer_prompts, read_prompts

_N_LIKELIEST = 100
"""So many candidates are looked at: at temperatures above 0 the other one may be unlikely."""


@dataclass(frozen=True)
class Comparison:
    """One prompt, continued plainly by itself and speculatively with the same seed.

    Attributes:
        first: Index of the first generated token in which they differ; None if they do not.
        gap: There, the distance in nats between the log-probabilities of the two candidates, by
            the model's own distribution in the plain run. At temperatures above 0 noise decides
            between them, so that it may be wide. None where one of the two ended, or where
            a candidate is not among the 100 likeliest.
        exact: Both were in the exact configuration.
        n_tokens: Tokens of the plain run.
        acceptance_rate: Of the speculative run.
    """

    first: int | None
    gap: float | None
    exact: bool
    n_tokens: int
    acceptance_rate: float


@dataclass(frozen=True)
class Report:
    """What many comparisons come to.

    Attributes:
        count: How many there are.
        exact: How many were in the exact configuration.
        differ: How many differ.
        first: Lower quartile, median and upper quartile of where; empty if none differs.
        gap_median, gap_largest: Of the known gaps, nats; None if there is none.
        unknown_gaps: Differences without one.
        n_tokens: Tokens compared, all plain runs together.
    """

    count: int
    exact: int
    differ: int
    first: list[float]
    gap_median: float | None
    gap_largest: float | None
    unknown_gaps: int
    n_tokens: int


def compare(plain: Generation, speculative: Generation) -> Comparison:
    """Compare two runs of one prompt; the plain one with log-probabilities."""
    first = first_difference(plain.tokens, speculative.tokens)
    gap = None
    if first is not None and first < min(len(plain.tokens), len(speculative.tokens)):
        there = plain.logprobs[first]
        other = dict(there.top).get(speculative.tokens[first])
        gap = None if other is None else abs(there.logprob - other)
    return Comparison(
        first,
        gap,
        plain.stats.exact and speculative.stats.exact,
        len(plain.tokens),
        speculative.stats.acceptance_rate,
    )


def summarise(comparisons: Sequence[Comparison]) -> Report:
    """Count and order comparisons, at least one."""
    firsts = [one.first for one in comparisons if one.first is not None]
    gaps = [one.gap for one in comparisons if one.gap is not None]
    return Report(
        count=len(comparisons),
        exact=sum(one.exact for one in comparisons),
        differ=len(firsts),
        first=np.quantile(firsts, (0.25, 0.5, 0.75)).tolist() if firsts else [],
        gap_median=statistics.median(gaps) if gaps else None,
        gap_largest=max(gaps, default=None),
        unknown_gaps=len(firsts) - len(gaps),
        n_tokens=sum(one.n_tokens for one in comparisons),
    )


def run(arguments: argparse.Namespace) -> int:
    """Generate, compare and print; the exit code, 0 whatever is found."""
    n_tokens = _check.integer("-n", arguments.n_predict, low=1)
    count = _check.integer("--count", arguments.count, low=1)
    n_seq = _check.integer("--n-seq", arguments.n_seq, low=1)
    prompts = read_prompts(arguments.file) if arguments.file else longer_prompts(REPLAYED)
    if count > len(prompts) and arguments.temp == 0:
        raise ArgumentError(
            f"--count is {count}, but there are {len(prompts)} prompts, and at temperature 0 each "
            "gives one text only."
        )
    exact = _arguments.EXACT[arguments.exact]
    if n_seq > 1 and exact == "auto":
        exact = False  # as it is then for several, so that both have a KV memory of one type
    options = {
        "n_ctx": arguments.ctx_size,
        "n_threads": arguments.threads,
        "n_gpu_layers": arguments.n_gpu_layers,
        "kv_type": arguments.kv_type,
        "exact": exact,
        "progress": True,
    }
    drafter = arguments.draft_model or "auto"
    comparisons = []
    with (
        SpecSession(arguments.model, None, **options) as plain,
        SpecSession(
            arguments.model, drafter, spec_length=arguments.spec_length, n_seq=n_seq, **options
        ) as speculative,
    ):
        room = plain.n_ctx - n_tokens
        if room < 1:
            raise ArgumentError(f"-n {n_tokens} leaves no room in a context of {plain.n_ctx}.")
        seeds = tqdm(range(count), desc="generating", leave=False, disable=None)
        requests = (
            (plain.tokenize(prompt)[:room], {
                "max_tokens": n_tokens, "temperature": arguments.temp, "seed": seed,
            })
            for seed, prompt in zip(seeds, itertools.cycle(prompts), strict=False)
        )  # fmt: skip
        while group := list(itertools.islice(requests, n_seq)):
            alone = [
                plain.generate(tokens, **wanted, logprobs=_N_LIKELIEST) for tokens, wanted in group
            ]
            together = [speculative.submit(tokens, **wanted) for tokens, wanted in group]
            comparisons += [
                compare(one, other.result()) for one, other in zip(alone, together, strict=True)
            ]
        description = plain.model_description
    report = summarise(comparisons)
    if arguments.json:
        each = [asdict(one) for one in comparisons]
        head = {"model": description, "n_seq": n_seq}
        print(json.dumps({**head, **asdict(report), "comparisons": each}))
    else:
        at_once = f", {n_seq} requests at once" if n_seq > 1 else ""
        print(f"{description}, temperature {arguments.temp:g}{at_once}")
        print(text(report))
    return 0


def text(report: Report) -> str:
    """Return a report in words."""
    lines = [
        f"{report.differ} of {report.count} generations differ from plain decoding "
        f"({report.n_tokens} tokens; {report.exact} in the exact configuration)"
    ]
    if report.differ:
        low, middle, high = (f"{x:g}" for x in report.first)
        lines.append(f"first different token: quartiles {low}, {middle}, {high}")
    if report.gap_median is not None and report.gap_largest is not None:
        lines.append(
            f"gap between the two candidates there: median {report.gap_median:.2g}, largest "
            f"{report.gap_largest:.2g} nats"
        )
    if report.unknown_gaps:
        lines.append(
            f"gap unknown for {report.unknown_gaps}: one ended, or a candidate is not among the "
            f"{_N_LIKELIEST} likeliest"
        )
    return "\n".join(lines)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `divergence` to the command line."""
    parser = commands.add_parser(
        "divergence", help="count tokens that differ from plain decoding", description=__doc__
    )
    _arguments.add_models(
        parser,
        help="GGUF file (default: the bundled model)",
        draft_help="GGUF file that drafts (default: as a session's, n-grams or the bundled one)",
    )
    parser.add_argument("-n", "--n-predict", type=int, default=300, help="tokens of each (300)")
    parser.add_argument("--count", type=int, default=100, help="generations (100)")
    parser.add_argument("-f", "--file", help='JSON lines with a "prompt" (the package\'s replays)')
    parser.add_argument("--temp", type=float, default=0.0, help="temperature (0: greedy)")
    parser.add_argument("--spec-length", type=int, default=4, help="most drafted tokens (4)")
    parser.add_argument("-kv", "--kv-type", help="type of the KV memory (as a session chooses)")
    _arguments.add_exact(parser)
    parser.add_argument(
        "-np", "--parallel", "--n-seq", dest="n_seq", type=int, default=1, metavar="N",
        help="requests that speculate together, each compared with itself alone (1)",
    )  # fmt: skip
    parser.add_argument("-t", "--threads", type=int, help="threads (the performance cores)")
    parser.add_argument("-c", "--ctx-size", type=int, help="tokens of context")
    parser.add_argument("-ngl", "--n-gpu-layers", type=int, help="GPU layers (all)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)
