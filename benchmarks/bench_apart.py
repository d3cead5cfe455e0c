"""The cost of a KV memory shared by several requests:

    python benchmarks/bench_apart.py MODEL.gguf... [-t THREADS]

Measures decodes of one row, and of two rows, of each of several requests, and of one row of every
other request, with one memory and with separate memories: milliseconds, medians of five, in turns.
Uses llama-cpp-python's llama.cpp on the CPU, with flash attention and a KV memory in F16. With
`-t 1` they are milliseconds of CPU time, so that other programs may run at the same time.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench_memory import CHUNK, Decoder

CASES = ((8, 100), (8, 200), (8, 400), (16, 100), (16, 400))
"""Requests, and tokens of each in the memory."""
DECODES = (("1 row each", 1, 1), ("2 rows each", 2, 1), ("1 row of every other", 1, 2))
"""A name, rows of each request, and the step between requests with rows. If a request has none,
llama.cpp decodes separate memories in several parts."""
TURNS = 5


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-t", type=int, default=1, help="threads (1)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        print(Path(model).name)
        for n_seq, n_cached in CASES:
            _compare(model, arguments.t, n_seq, n_cached)


def _compare(model: str, n_threads: int, n_seq: int, n_cached: int) -> None:
    decoders = [
        Decoder(
            model,
            "f16",
            flash_attn=True,
            n_threads=n_threads,
            n_ctx=n_seq * CHUNK,
            n_seq=n_seq,
            unified=unified,
        )
        for unified in (True, False)
    ]
    for decoder in decoders:
        for one in range(n_seq):
            decoder.decode(n_cached, logits=False, sequences=[one])
    for name, n, step in DECODES:
        among = range(0, n_seq, step)
        turns = [[one.again(n, among) for one in decoders] for _ in range(TURNS)]
        shared, apart = (statistics.median(column) for column in zip(*turns, strict=True))
        ratio = f"{shared:5.0f} {apart:5.0f}  {shared / apart:.2f}"
        print(f"  {n_seq:2} requests of {n_cached} tokens, {name}: {ratio}", flush=True)
    for decoder in decoders:
        decoder.close()


if __name__ == "__main__":
    main()
