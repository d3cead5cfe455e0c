"""`specllama bench`: measures how much faster speculation is than plain decoding on this machine.

Drafters and plain decoding take turns in one process, with texts of the package. It takes some
minutes. --concurrency compares many requests at once; --simulate computes the speeds on other
machines."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from specllama import _core, _files
from specllama.bench import contestants, page, servers, table, throughput, workload
from specllama.bench.mean import mean_of
from specllama.bench.measuring import measure
from specllama.bench.simulating import geometric_mean, simulate
from specllama.commands import _arguments
from specllama.commands.whole_numbers import whole
from specllama.errors import ArgumentError
from specllama.model import hub
from specllama.model.bundled import BUNDLED_MODEL
from specllama.model.loaded_model import path_of
from specllama.session import SpecSession
from specllama.simulate import read_curves
from specllama.workloads import Half


def run(arguments: argparse.Namespace) -> int:
    """Measure or simulate, and print; return the exit code."""
    n_tokens, n_texts, repeat = arguments.n_predict, arguments.texts, arguments.repeat
    workloads = workload.choose(arguments.workload, arguments.replay, n_texts, arguments.half)
    if arguments.llama_server is not None and arguments.concurrency is None:
        raise ArgumentError("--llama-server requires --concurrency.")
    if arguments.llama_server is not None and arguments.rpc is not None:
        raise ArgumentError(
            "--llama-server runs a second process, but an RPC server serves one process at a time; "
            "leave out --rpc."
        )
    if arguments.simulate is not None:
        for name in ("corpus", "draft_model", "contestants", "rpc"):
            if getattr(arguments, name) is not None:
                raise ArgumentError(
                    "--simulate supports only n-grams and matches of any length; leave out "
                    f"--{name.replace('_', '-')}."
                )
        if arguments.concurrency is not None:
            raise ArgumentError("--simulate computes one request; leave out --concurrency.")
        if arguments.html is not None:
            raise ArgumentError("--html shows measurements; leave it out with --simulate.")
        return _simulate(arguments, workloads, n_tokens)
    if arguments.concurrency is not None:
        if arguments.html is not None:
            raise ArgumentError("--html and --concurrency exclude each other; leave one out.")
        return _serve(arguments, workloads, arguments.concurrency, n_tokens, repeat)
    chosen = contestants.choose(arguments.contestants, with_model=arguments.draft_model is not None)
    if arguments.html is not None:
        _files.check_writable(arguments.html)
    options = {
        "n_threads": arguments.n_threads,
        "n_gpu_layers": arguments.n_gpu_layers,
        "rpc": arguments.rpc,
        "kv_type": arguments.kv_type,
        "draft_type": arguments.draft_type,
        "n_ctx": arguments.n_ctx,
        "corpus": arguments.corpus,
        "progress": True,
    }
    with contestants.sessions(
        chosen, arguments.model, arguments.draft_model, **options
    ) as sessions:
        plain = sessions[0]
        workloads = workload.for_model(workloads, plain, n_texts, arguments.half)
        about = [_about(plain, arguments.kv_type, f"{n_tokens} tokens a text", repeat)]
        if arguments.rpc is None and (slow := _core.slow_types(path_of(plain))):
            about.append(slow)
        if arguments.draft_model is not None:
            about.append(f"draft model: {arguments.draft_model}")
        if arguments.corpus is not None:
            about.append(f"corpus: {arguments.corpus}")
        if not arguments.json:
            print(*about, "", table.head(), sep="\n")
        results = []
        for one in workloads:
            results.append(
                measure(one, chosen, sessions, n_tokens, repeat, bounded=arguments.corpus is None)
            )
            last = results[-1]
            print(json.dumps(asdict(last)) if arguments.json else table.measured(last), flush=True)
            if arguments.html is not None:  # after each, in case the run is interrupted
                _files.write(arguments.html, page.document(about, results))
        if len(results) > 1:
            mean = mean_of(results)
            print(json.dumps(asdict(mean)) if arguments.json else table.mean(mean))
    return 0


def _simulate(
    arguments: argparse.Namespace, workloads: list[workload.Workload], n_tokens: int
) -> int:
    curves = read_curves(arguments.simulate)
    workloads = workloads or workload.choose("replayed", None, arguments.texts)
    with SpecSession(arguments.model, None, n_ctx=64, n_gpu_layers=0, n_threads=1) as session:
        simulations = simulate(workloads, curves, session, n_tokens)
    if arguments.json:
        for one in simulations:
            print(json.dumps(asdict(one) | {"bound_share": one.bound_share}))
        return 0
    print(f"up to {n_tokens} tokens a text, by arithmetic: speeds as multiples of plain decoding\n")
    print(table.SIMULATED_HEAD)
    for _, group in itertools.groupby(simulations, key=lambda one: one.curve):
        of_machine = list(group)
        for one in of_machine:
            print(table.simulated(one))
        if len(of_machine) > 1:
            print(table.simulated(geometric_mean(of_machine)))
    return 0


def _serve(
    arguments: argparse.Namespace,
    workloads: list[workload.Workload],
    at_once: Sequence[int],
    n_tokens: int,
    repeat: int,
) -> int:
    draft_model = arguments.draft_model
    model = hub.local_path("model", arguments.model or BUNDLED_MODEL)
    with SpecSession(
        model, None, n_ctx=64, n_threads=arguments.n_threads, n_gpu_layers=0
    ) as session:
        workloads = workload.for_model(workloads, session, arguments.texts, arguments.half)
        # Twice as many as run at once, so that another one follows when one has ended.
        prompts = throughput.mixed(
            workloads, 2 * max(at_once), lambda task: task.prompt_tokens(session)
        )
        n_ctx = arguments.n_ctx or max(map(len, prompts)) + n_tokens
        setup = servers.Setup(
            model=model,
            draft_model=None if draft_model is None else hub.local_path("draft", draft_model),
            n_threads=session.n_threads,
            n_ctx=n_ctx,
            kv_type=arguments.kv_type,
            draft_type=arguments.draft_type,
            n_gpu_layers=arguments.n_gpu_layers,
            rpc=arguments.rpc,
            corpus=arguments.corpus,
            program=None if arguments.llama_server is None else Path(arguments.llama_server),
        )
        about = _about(session, arguments.kv_type, f"{n_tokens} tokens an answer", repeat)
    chosen = servers.choose(arguments.contestants, setup, at_once)
    if not arguments.json:
        print(about, flush=True)
    result = throughput.measure(chosen, prompts, n_tokens, repeat)
    print(json.dumps(asdict(result)) if arguments.json else table.served(result))
    return 0


def _about(session: SpecSession, kv_type: str, length: str, repeat: int) -> str:
    kernels = f", CPU kernels: {session.cpu_kernels}" if session.cpu_kernels else ""
    return (
        f"{session.model_description}, {session.n_threads} threads{kernels}, KV {kv_type}, up to "
        f"{length}, medians of {repeat} alternating runs of each"
    )


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `bench` to the command line."""
    parser = commands.add_parser(
        "bench", help="measure how much faster speculation is on this machine", description=__doc__
    )
    _arguments.add_models(parser)
    names = ", ".join(workload.NAMES)
    parser.add_argument(
        "--workload", metavar="NAME,...",
        help=f"kinds of text: {names} or all; answered: the model's own answers to prompts, "
        "replayed: given texts, generated: free continuations, code: replayed-code and "
        "generated-code (default: answered if the model has a chat template, else replayed and "
        "generated)",
    )  # fmt: skip
    parser.add_argument(
        "--replay", metavar="FILE.jsonl",
        help='texts to replay, one JSON object per line: {"prompt": ..., "reference": ...}',
    )  # fmt: skip
    parser.add_argument(
        "--contestants", metavar="NAME,...",
        help="drafters to compare with plain decoding: ngram (n-grams and copies), "
        "match (copies only), model (draft model only), cascade (ngram and model together, as "
        "sessions draft); ngram-N and model-N draft a fixed 1, 2, 4, 8 or 16 tokens; all (default: "
        "ngram, and cascade with a draft model)",
    )  # fmt: skip
    _arguments.add_options(parser, "corpus")
    parser.add_argument(
        "-n", "--n-predict", type=whole(8), default=192, help="tokens per text (default: 192)"
    )
    parser.add_argument("--texts", type=whole(1), default=4, help="texts per workload (default: 4)")
    parser.add_argument(
        "--half",
        choices=get_args(Half),
        help="answered texts: those that constants were tuned on, or the others (default: both)",
    )
    parser.add_argument(
        "--repeat", type=whole(1), default=5, help="runs of each drafter (default: 5)"
    )
    parser.add_argument(
        "--concurrency", metavar="N", type=whole(2, 64), nargs="+",
        help="compare N concurrent requests with one request at a time",
    )  # fmt: skip
    parser.add_argument(
        "--llama-server", metavar="PATH",
        help="executable of llama.cpp's server, to compare with: in --concurrency, and as the "
        "contestants server and server-TYPE-N",
    )  # fmt: skip
    parser.add_argument(
        "--simulate", metavar="CURVES.json",
        help="compute the speeds on other machines from the relative times of their decodes: "
        '{"name": {"1": 1.0, "2": 1.24, ...}}',
    )  # fmt: skip
    _arguments.add_options(
        parser, "n_threads", "n_ctx", "n_gpu_layers", "rpc", "kv_type", "draft_type",
        defaults={"n_gpu_layers": -1, "kv_type": "f16", "draft_type": "auto"},
    )  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write a page with tables and plots")
    parser.add_argument("--json", action="store_true", help="print a JSON object per workload")
    parser.set_defaults(run=run)
