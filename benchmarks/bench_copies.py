"""The gain of copies of prompts in main memory: `python benchmarks/bench_copies.py [MODEL] [-t N]`.

For prompts of several lengths, prints milliseconds until the first token after another prompt has
evicted the prompt from the KV memory, without and with copies in main memory (`cache_ram`); and the
same for new prompts, for which the copies are also made. Medians of eight, on the CPU.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

from specllama import SpecSession

LENGTHS = (64, 128, 256, 512)
N_PROMPTS = 8


def times(session: SpecSession, prompts: list[list[int]]) -> float:
    """Return the median milliseconds of the prompts."""
    taken = []
    for prompt in prompts:
        began = time.perf_counter()
        session.generate(prompt, max_tokens=1)
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("-t", "--threads", type=int, default=1)
    arguments = parser.parse_args()
    options: dict[str, Any] = {"n_ctx": 1024, "n_threads": arguments.threads, "n_gpu_layers": 0}
    print("tokens  new: without, with copies  again: without, with copies (ms)")
    for n in LENGTHS:
        rng = random.Random(n)
        prompts = [[rng.randrange(100, 500) for _ in range(n)] for _ in range(N_PROMPTS)]
        new, again = [], []
        for cache_ram in (0, -1):
            with SpecSession(arguments.model, None, cache_ram=cache_ram, **options) as session:
                session.generate([5, 6, 7], max_tokens=1)
                new.append(times(session, prompts))
                again.append(times(session, prompts))
        print(f"{n:6}  {new[0]:9.1f} {new[1]:9.1f}  {again[0]:15.1f} {again[1]:9.1f}", flush=True)


if __name__ == "__main__":
    main()
