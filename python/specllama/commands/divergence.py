"""`specllama divergence`: checks how often speculation changes an answer.

With --exact on it never does. Without, a decode of several tokens adds numbers in another order
than a decode of one token, so rounding differs, and where two tokens are almost equally likely the
other one may win. The report says how often, and how close they were."""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import asdict

from tqdm import tqdm

from specllama.commands import _arguments
from specllama.commands.whole_numbers import whole
from specllama.errors import ArgumentError
from specllama.measure.divergence import N_LIKELIEST, compare, summarise, text
from specllama.session import SpecSession
from specllama.workloads import REPLAYED, longer_prompts, read_prompts

_OPTIONS = ("spec_length", "kv_type", "exact", "n_seq", "n_threads", "n_ctx", "n_gpu_layers", "rpc")
_DEFAULTS = {"temperature": 0.0, "spec_length": 4, "exact": "auto", "n_seq": 1}


def run(arguments: argparse.Namespace) -> int:
    """Generate, compare and print; return the exit code, which is always 0."""
    n_tokens, count, n_seq = arguments.n_predict, arguments.count, arguments.n_seq
    prompts = read_prompts(arguments.file) if arguments.file else longer_prompts(REPLAYED)
    if count > len(prompts) and arguments.temperature == 0:
        raise ArgumentError(
            f"--count is {count}, but at temperature 0 each of the {len(prompts)} prompts gives "
            f"only one text; give at most {len(prompts)}, or a temperature."
        )
    options = _arguments.given_options(arguments, _OPTIONS) | {"progress": True}
    if n_seq > 1 and options["exact"] == "auto":
        options["exact"] = (
            False  # as "auto" is for several requests; so both sessions have the same KV type
        )
    speculating = {"spec_length": options.pop("spec_length"), "n_seq": options.pop("n_seq")}
    drafter = arguments.draft_model or "auto"
    comparisons = []
    with (
        SpecSession(arguments.model, None, **options) as plain,
        SpecSession(arguments.model, drafter, **speculating, **options) as speculative,
    ):
        room = plain.n_ctx - n_tokens
        if room < 1:
            raise ArgumentError(f"-n {n_tokens} leaves no room in a context of {plain.n_ctx}.")
        seeds = tqdm(range(count), desc="generating", leave=False, disable=None)
        requests = (
            (plain.tokenize(prompt)[:room], {
                "max_tokens": n_tokens, "temperature": arguments.temperature, "seed": seed,
            })
            for seed, prompt in zip(seeds, itertools.cycle(prompts), strict=False)
        )  # fmt: skip
        while group := list(itertools.islice(requests, n_seq)):
            alone = [
                plain.generate(tokens, **wanted, logprobs=N_LIKELIEST) for tokens, wanted in group
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
        print(f"{description}, temperature {arguments.temperature:g}{at_once}")
        print(text(report))
    return 0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `divergence` to the command line."""
    parser = commands.add_parser(
        "divergence", help="check how often speculation changes an answer", description=__doc__
    )
    _arguments.add_models(parser)
    parser.add_argument(
        "-n", "--n-predict", type=whole(1), default=300, help="tokens of each answer (default: 300)"
    )
    parser.add_argument(
        "--count", type=whole(1), default=100, help="number of answers (default: 100)"
    )
    parser.add_argument(
        "-f", "--file", type=_arguments.filled,
        help='file of JSON lines with a "prompt" (default: texts of the package)',
    )  # fmt: skip
    _arguments.add_options(parser, "temperature", *_OPTIONS, defaults=_DEFAULTS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
