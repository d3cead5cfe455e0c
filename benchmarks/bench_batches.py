"""Whether to decode the rows of a round together with a batch of a prompt:

    python benchmarks/bench_batches.py MODEL.gguf... [-t THREADS]

Seven requests share a memory with 200 tokens each, and there is a prompt. Prints milliseconds of a
batch of the prompt, of one row of each request, of both in one decode, and the ratio of this decode
to the two separate ones (below 1: one decode is better). Medians of five, in turns. Uses
llama-cpp-python's llama.cpp on the CPU, with flash attention and a KV memory in F16.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench_memory import CHUNK, Decoder

REQUESTS = 7
N_CACHED = 200
PROMPTS = (16, 24, 32, 48, 64, 128, 256, CHUNK - REQUESTS)
"""Tokens of a batch."""
TURNS = 5


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        _compare(model, arguments.t)


def _compare(model: str, n_threads: int) -> None:
    decoder = Decoder(
        model,
        "f16",
        flash_attn=True,
        n_threads=n_threads,
        n_ctx=(REQUESTS + 1) * CHUNK,
        n_seq=REQUESTS + 1,
    )
    for one in range(REQUESTS):
        decoder.decode(N_CACHED, logits=False, sequences=[one])
    a_round = [(one, True) for one in range(REQUESTS)]
    print(Path(model).name)
    for n in PROMPTS:
        prompt = [(REQUESTS, False)] * n
        cases = (prompt, a_round, a_round + prompt)
        turns: list[list[float]] = []
        for _ in range(TURNS):
            turns.append([])
            for rows in cases:
                turns[-1].append(decoder.run(rows))
                decoder.forget()
        apart = statistics.median(prompt + a_round for prompt, a_round, _ in turns)
        medians = [statistics.median(case) for case in zip(*turns, strict=True)]
        figures = "  ".join(f"{one:6.0f}" for one in medians)
        print(f"  {n:4} tokens: {figures}  {medians[2] / apart:.2f}", flush=True)
    decoder.close()


if __name__ == "__main__":
    main()
