"""The cost of choosing a token, in microseconds per row of logits:

    python benchmarks/bench_sampler.py

The row is copied before each choice, because choosing changes it; the figures include the copy. The
last column is the cost of computing the probability of one token, which a draft model needs for
each drafted token.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from specllama import _core
from specllama.requests.options import sampling_options

SETTINGS: dict[str, dict[str, Any]] = {
    "T = 0": {},
    "T = 1, top-k 40": {"temperature": 1.0, "top_k": 40},
    "T = 1": {"temperature": 1.0},
    "T = 1, top-p 0.9": {"temperature": 1.0, "top_p": 0.9},
    "T = 1, min-p 0.05": {"temperature": 1.0, "min_p": 0.05},
    "and XTC": {"temperature": 1.0, "min_p": 0.05, "xtc_probability": 1.0},
    "T = 1, n-sigma 1": {"temperature": 1.0, "top_n_sigma": 1.0},
    "T = 1, typical": {"temperature": 1.0, "typical_p": 0.9},
}


def microseconds(work: Callable[[], object], n: int) -> float:
    """Return the median of 7 runs of `work`, which does something n times."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        work()
        times.append(1e6 * (time.perf_counter() - start) / n)
    return statistics.median(times)


def main() -> None:
    print("vocabulary  " + "  ".join(f"{name:>17}" for name in (*SETTINGS, "probability")))
    for n_vocab in (32_000, 128_000, 256_000):
        # As peaked as a model's logits: 50 likely tokens, and many unlikely ones with 0.4 to 6 % of
        # the probability.
        rng = np.random.default_rng(1)
        logits = rng.normal(0, 2, n_vocab).astype(np.float32)
        logits[rng.integers(0, n_vocab, 50)] += np.linspace(4, 14, 50, dtype=np.float32)
        n = 100
        figures = []
        for options in SETTINGS.values():
            sampler = _core.Sampler(sampling_options(**options), n_vocab)
            choose = partial(sampler.choose_many, logits, 1, n)
            figures.append(microseconds(choose, n))
        figures.append(microseconds(partial(_core.probability, logits, 1), 1))
        print(f"{n_vocab:>10}  " + "  ".join(f"{figure:>17.1f}" for figure in figures))


if __name__ == "__main__":
    main()
