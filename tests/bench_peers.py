"""Side by side with llama-cpp-python, plain and with prompt lookup, in turns:

    python tests/bench_peers.py [MODEL.gguf] [-n TOKENS] [--repeat N] [-t THREADS]

The same file, threads, prompts (those that the model continues as it likes, at T = 0), and KV
memory (Q8_0 with flash attention), on the CPU. Everyone's time is that of a clock on the wall from
the first token to the last, so neither side's prefill counts and both sides' Python does.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from specllama import SpecSession
from specllama.bench.arithmetic import first_difference, median_interval
from specllama.session import BUNDLED_MODEL
from specllama.workloads import WORKLOADS

N_CTX = 2048
LOOKUPS = (2, 10)


class Run(NamedTuple):
    tokens: list[int]
    speed: float


Contestant = Callable[[list[int], int], Run]


def timed(tokens: Iterable[int]) -> Run:
    """Take all tokens; their speed after the first."""
    taken, start = [], 0.0
    for token in tokens:
        taken.append(token)
        start = start or time.perf_counter()
    return Run(taken, (len(taken) - 1) / (time.perf_counter() - start))


def peer(model: str, n_threads: int, n_draft: int) -> Contestant:
    llama = llama_cpp.Llama(
        model,
        n_ctx=N_CTX,
        n_threads=n_threads,
        n_threads_batch=n_threads,
        n_gpu_layers=0,
        flash_attn=True,
        type_k=llama_cpp.GGML_TYPE_Q8_0,
        type_v=llama_cpp.GGML_TYPE_Q8_0,
        draft_model=LlamaPromptLookupDecoding(num_pred_tokens=n_draft) if n_draft else None,
        verbose=False,
    )

    def run(prompt: list[int], n_tokens: int) -> Run:
        return timed(itertools.islice(llama.generate(prompt, temp=0.0), n_tokens))

    return run


def ours(session: SpecSession) -> Contestant:
    def run(prompt: list[int], n_tokens: int) -> Run:
        stream = session.stream(prompt, max_tokens=n_tokens)
        return timed(chunk.token for chunk in stream if chunk.token is not None)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=str(BUNDLED_MODEL))
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("-t", type=int, default=1)
    arguments = parser.parse_args()
    options = {"n_ctx": N_CTX, "n_threads": arguments.t, "n_gpu_layers": 0, "exact": True}
    with (
        SpecSession(arguments.model, None, **options) as plain,
        SpecSession(arguments.model, "ngram", **options) as auto,
    ):
        contestants = {
            "llama-cpp-python, plain": peer(arguments.model, arguments.t, 0),
            **{
                f"llama-cpp-python, lookup {n}": peer(arguments.model, arguments.t, n)
                for n in LOOKUPS
            },
            "specllama, plain": ours(plain),
            "specllama, auto": ours(auto),
        }
        for name, text in WORKLOADS.items():
            prompt = plain.tokenize(text)
            runs: dict[str, list[Run]] = {one: [] for one in contestants}
            for turn in range(arguments.repeat + 1):
                for one, run in contestants.items():
                    measured = run(prompt, arguments.n)
                    if turn > 0:
                        runs[one].append(measured)
            report(name, runs)


def report(workload: str, runs: dict[str, list[Run]]) -> None:
    """Print speeds, and ratios to the first."""
    print(f"{workload:<30}tokens/s   ratio   (95 %)")
    first = next(iter(runs.values()))
    medians = {}
    for name, mine in runs.items():
        medians[name] = statistics.median(run.speed for run in mine)
        ratios = [run.speed / other.speed for run, other in zip(mine, first, strict=True)]
        ratio, low, high = median_interval(ratios)
        line = f"  {name:<28}{medians[name]:>8.1f}{ratio:>7.2f}x   ({low:.2f}..{high:.2f})"
        differs = first_difference(mine[0].tokens, first[0].tokens)
        print(line + ("" if differs is None else f"   tokens differ from {differs} on"))
    *peers, _, auto = medians.values()
    print(f"  auto is {auto / max(peers):.2f} x as fast as the best peer\n")


if __name__ == "__main__":
    main()
