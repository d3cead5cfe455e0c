"""Costs of decodes on RPC servers and the gain of speculation there, compared with this machine.

    python benchmarks/bench_rpc.py MODEL [--rpc HOST:PORT,...] [--trip MS] [--rate MBIT] [-t N]
        [-ngl N] [--exact] [--repeat N]

Without --rpc, two servers with one thread each are started here. With --trip or --rate, each server
is behind a link of `support/slow_link.py`. Prints v(n) in milliseconds: here, on the servers, and
on the servers in the first decode after one of another width, when llama.cpp sends its graph again.
Then prints the tokens per second of a text that copies from its prompt, plain and with n-gram
drafts of the planner's lengths (the best of the runs). With --exact the result does not depend on
the width of a decode, if the file's weights allow that (Q8_0); then the tokens are compared with
those of plain decoding here.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from specllama import Drafter, SpecSession
from specllama.workloads import COPY

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from rpc_worker import workers
from slow_link import slow_link

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
N_TOKENS = 200


class Twice(Drafter):
    """Drafts random tokens. Every width comes twice in a row, in random order."""

    def __init__(self) -> None:
        self.n_vocab = 1
        self.widths: list[int] = []
        self._rng = np.random.default_rng(0)

    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> Iterable[int] | None:
        if not self.widths:
            self.widths = [int(n) for n in self._rng.permutation(WIDTHS) for _ in range(2)]
        n = min(self.widths.pop() - 1, max_tokens)
        return [int(token) for token in self._rng.integers(0, self.n_vocab, n)]


def decode_times(model: str, repeat: int, **options: Any) -> dict[bool, dict[int, float]]:
    """Return the median seconds by width, for decodes with the width of the one before (True) and
    for others (False)."""
    times: dict[bool, dict[int, list[float]]] = {
        same: {n: [] for n in WIDTHS} for same in (True, False)
    }
    drafter = Twice()
    with SpecSession(model, drafter, spec_length=max(WIDTHS) - 1, **options) as session:
        drafter.n_vocab = session.n_vocab
        prompt = session.tokenize(COPY)
        # The first turn warms up and does not count.
        for turn in range(repeat + 1):
            drafter.widths = []
            rounds: list[tuple[int, float]] = []
            with session.stream(prompt, max_tokens=6 * len(WIDTHS), temperature=0.0) as stream:
                before = stream.stats
                for _ in stream:
                    now = stream.stats
                    if now.rounds == before.rounds + 1:
                        seconds = now.seconds.verify - before.seconds.verify
                        rounds.append((now.drafted - before.drafted + 1, seconds))
                    before = now
            # The first round contains the end of the prompt.
            for (width, _), (n, seconds) in itertools.pairwise(rounds[1:]):
                if turn > 0 and n in WIDTHS:
                    times[n == width][n].append(seconds)
    return {
        same: {n: statistics.median(seen or [np.nan]) for n, seen in by_width.items()}
        for same, by_width in times.items()
    }


def speeds(model: str, draft: str | None, repeat: int, **options: Any) -> tuple[float, list[int]]:
    """Return the tokens per second of the best run, and the tokens."""
    with SpecSession(model, draft, **options) as session:
        runs = [session.generate(COPY, max_tokens=N_TOKENS, temperature=0.0) for _ in range(repeat)]
    return max(run.stats.tokens_per_second for run in runs), runs[-1].tokens


@contextmanager
def servers(given: str | None, trip: float, rate: float | None) -> Iterator[str]:
    """Yield the addresses of the given servers, or of two new ones.

    Args:
        given: Addresses, or None.
        trip: Round trip in seconds.
        rate: Bits per second of each link.
    """
    with ExitStack() as stack:
        found = [one.endpoint for one in stack.enter_context(workers(2))] if given is None else []
        endpoints = found or (given or "").split(",")
        if trip > 0 or rate is not None:
            line: dict[str, Any] = {"delay": trip / 2, "rate": rate, "piece": 1 << 16}
            links = [stack.enter_context(slow_link(f"http://{one}", **line)) for one in endpoints]
            endpoints = [f"127.0.0.1:{link.port}" for link in links]
        yield ",".join(endpoints)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--rpc", metavar="HOST:PORT,...", help="RPC servers (two new ones)")
    parser.add_argument("--trip", type=float, default=0, help="round trip in ms (0)")
    parser.add_argument("--rate", type=float, help="of the link, in Mbit/s (unlimited)")
    parser.add_argument("-t", "--threads", type=int, default=1, help="threads here (1)")
    parser.add_argument("-ngl", "--n-gpu-layers", type=int, help="layers on the servers (all)")
    parser.add_argument("--exact", action="store_true", help="one result for all widths")
    parser.add_argument("--repeat", type=int, default=5, help="runs (5)")
    arguments = parser.parse_args()
    rate = None if arguments.rate is None else 1e6 * arguments.rate
    common: dict[str, Any] = {"n_ctx": 2048, "n_threads": arguments.threads}
    if arguments.exact:
        common |= {"kv_type": "q8_0", "flash_attn": True}
    here = common | {"n_gpu_layers": 0, "exact": arguments.exact or None}
    there = common | {"n_gpu_layers": arguments.n_gpu_layers}
    with servers(arguments.rpc, arguments.trip / 1e3, rate) as endpoints:
        compare(arguments.model, arguments.repeat, here, there | {"rpc": endpoints})


def compare(model: str, repeat: int, here: dict[str, Any], there: dict[str, Any]) -> None:
    local, remote = (decode_times(model, repeat, **options) for options in (here, there))
    print(" n    here   there  another width before")
    for n in WIDTHS:
        times = [1e3 * seconds for seconds in (local[True][n], remote[True][n], remote[False][n])]
        print(f"{n:2}  {times[0]:6.1f}  {times[1]:6.1f}  {times[2]:6.1f}")
    expected: list[int] | None = None
    for name, options in (("here", here), ("there", there)):
        if not here["exact"]:
            expected = None
        for draft in (None, "ngram"):
            speed, tokens = speeds(model, draft, repeat, **options)
            expected = expected or tokens
            same = "the same tokens as plain" if tokens == expected else "other tokens than plain"
            print(f"{name:6} {draft or 'plain':6} {speed:6.1f} tokens/s, {same}", flush=True)


if __name__ == "__main__":
    main()
