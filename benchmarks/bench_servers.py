"""Many requests at once over HTTP, to our server and to llama-server, in turns:

    python benchmarks/bench_servers.py MODEL.gguf --llama-server PROGRAM [--at-once 16] [--turns 5]
        [--spec-type TYPE ...] [-n TOKENS ...] [-t THREADS]

In each turn each server is started anew, and gets twice as many requests as it has slots, from as
many clients as it has slots. The prompts are held-out texts of six kinds. The answers have the
lengths of -n in turn, even if the model would end them. With --spec-type, llama-server also takes
part with these kinds of drafts. The columns are medians over the turns:

    tokens/s    of all answers together, prompts included
    first       seconds until the first text of an answer, mean of all
    pause       longest time between two texts of an answer, in seconds
    ours        our tokens/s as a multiple of this server's, then the least and greatest turn
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, pairwise
from statistics import mean, median

import httpx
from bench_start import serving
from specllama import SpecSession
from specllama.bench import throughput, workload

N_CTX = 2048
"""Tokens of each slot."""
WORKLOADS = "code,prose,copy,edit,free,json"
OURS = "specllama"


@dataclass
class Load:
    """What one server did with all requests; see the columns."""

    per_second: float
    first: float
    pause: float


def prompts(model: str, n_requests: int) -> list[list[int]]:
    """Return the token ids of held-out prompts, kinds of texts in turn."""
    with SpecSession(model, None, n_ctx=64) as session:
        chosen = workload.choose(WORKLOADS, None, n_requests)
        chosen = workload.for_model(chosen, session, n_requests, "held-out")
        return throughput.mixed(chosen, n_requests, lambda task: task.prompt_tokens(session))


def ask(client: httpx.Client, prompt: Sequence[int], n_tokens: int) -> list[float]:
    """Return the seconds from the request to each text of its answer."""
    body = {"prompt": prompt, "n_predict": n_tokens, "temperature": 0, "ignore_eos": True}
    start, arrivals = time.perf_counter(), []
    n_generated = 0
    with client.stream("POST", "/completion", json=body | {"stream": True}) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            event = json.loads(line[5:]) if line.startswith("data:") else {}
            if event.get("content"):
                arrivals.append(time.perf_counter() - start)
            n_generated = event.get("tokens_predicted", n_generated)
    if n_generated != n_tokens:
        raise SystemExit(f"An answer has {n_generated} tokens, not {n_tokens}.")
    return arrivals


def load(command: list[str], requests: Sequence[tuple[list[int], int]], n_at_once: int) -> Load:
    """Start a server, and send it all requests."""
    with serving(command, by_processor=False) as (server, port):
        # llama-server closes the connection after an answer.
        limits = httpx.Limits(max_connections=n_at_once, max_keepalive_connections=0)
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=3600, limits=limits)
        with client, ThreadPoolExecutor(n_at_once) as clients:
            start = time.perf_counter()
            arrivals = list(clients.map(lambda one: ask(client, *one), requests))
            seconds = time.perf_counter() - start
        server.process.terminate()  # it then keeps what it has learned
        server.process.wait()
    return Load(
        sum(n_tokens for _, n_tokens in requests) / seconds,
        mean(one[0] for one in arrivals),
        max((b - a for one in arrivals for a, b in pairwise(one)), default=0),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--llama-server", required=True, metavar="PROGRAM")
    parser.add_argument("--spec-type", nargs="+", default=[])
    parser.add_argument("--at-once", type=int, default=16, metavar="N")
    parser.add_argument("--turns", type=int, default=5)
    lengths = [16, 80, 48, 24, 64, 96, 32, 40]
    parser.add_argument("-n", "--tokens", type=int, nargs="+", default=lengths)
    parser.add_argument("-t", "--threads", type=int, default=2)
    arguments = parser.parse_args()
    n = arguments.at_once
    requests = list(zip(prompts(arguments.model, 2 * n), cycle(arguments.tokens), strict=False))
    common = ["-m", arguments.model, "-np", str(n), "-t", str(arguments.threads)]
    peer = [arguments.llama_server, *common, "-tb", str(arguments.threads), "-c", str(n * N_CTX)]
    commands = {
        OURS: [sys.executable, "-m", "specllama", "serve", *common, "-c", str(N_CTX)],
        "llama-server": peer,
        **{f"with {kind}": [*peer, "--spec-type", kind] for kind in arguments.spec_type},
    }
    loads: dict[str, list[Load]] = {name: [] for name in commands}
    for turn in range(arguments.turns):
        for name in list(commands)[:: -1 if turn % 2 else 1]:
            loads[name].append(load(commands[name], requests, n))
    print(f"{'':20} tokens/s  first  pause  ours")
    for name, turns in loads.items():
        per_second = median(one.per_second for one in turns)
        first = median(one.first for one in turns)
        pause = median(one.pause for one in turns)
        pairs = zip(loads[OURS], turns, strict=True)
        ratios = sorted(mine.per_second / other.per_second for mine, other in pairs)
        ours = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{name:20} {per_second:8.1f}  {first:5.2f}  {pause:5.2f}  {ours}")


if __name__ == "__main__":
    main()
