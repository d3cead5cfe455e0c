"""The speed of NGramPredictor on real text.

    python benchmarks/bench_ngram.py

Uses the tokens of the Python standard library's sources by the bundled model's tokenizer. The time
of `predict(4)` includes the call from Python; the time of `predict(0)`, which is only the call, is
printed next to it.
"""

from __future__ import annotations

import statistics
import sysconfig
import time
from pathlib import Path

from specllama import NGramPredictor, SpecSession


def real_tokens(n: int) -> list[int]:
    tokens: list[int] = []
    with SpecSession(draft=None, n_gpu_layers=0) as session:
        for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("**/*.py")):
            if "site-packages" not in path.parts:
                tokens += session.tokenize(path.read_text(errors="replace"))
            if len(tokens) >= n:
                break
    return tokens[:n]


def microseconds(predictor: NGramPredictor, n: int, following: list[int]) -> float:
    """Return the median time of predict(n), with an update between the calls."""
    times = []
    for token in following:
        start = time.perf_counter()
        predictor.predict(n)
        times.append(time.perf_counter() - start)
        predictor.update(token)
    return statistics.median(times) * 1e6


def main() -> None:
    tokens = real_tokens(1_002_000)
    print("    tokens  updates/s  predict(4)  predict(0)  tables")
    for n in (1_000, 100_000, 1_000_000):
        learned, following = tokens[:n], tokens[n : n + 2_000]
        rates = []
        for _ in range(5):
            rounds = max(1, 20_000 // n)
            predictors = [NGramPredictor(max_bytes=1 << 30) for _ in range(rounds)]
            start = time.perf_counter()
            for predictor in predictors:
                predictor.update_batch(learned)
            rates.append(rounds * n / (time.perf_counter() - start))
        four = microseconds(predictor, 4, following[:1_000])
        none = microseconds(predictor, 0, following[1_000:])
        print(
            f"{n:>10,}  {statistics.median(rates) / 1e6:>7.2f} M  {four:>7.2f} us  {none:>7.2f} us"
            f"  {predictor.size_bytes / 2**20:>6.1f} MiB"
        )


if __name__ == "__main__":
    main()
