"""Milliseconds of a decode by its width (number of tokens):

    python benchmarks/bench_costs.py MODEL.gguf... [-t THREADS]

Medians of five decodes after 200 tokens, in turns. Uses llama-cpp-python's llama.cpp on the CPU,
with flash attention and a KV memory in F16. With `-t 1` they are milliseconds of CPU time, so that
other programs may run at the same time.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench_memory import Decoder

N_CACHED = 200
WIDTHS = (*range(1, 25), 31, 32, 47, 48, 63)
TURNS = 5


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        decoder = Decoder(model, "f16", flash_attn=True, n_threads=arguments.t, n_ctx=512)
        decoder.decode(N_CACHED, logits=False)
        turns = [[decoder.again(n) for n in WIDTHS] for _ in range(TURNS)]
        decoder.close()
        medians = map(statistics.median, zip(*turns, strict=True))
        figures = "  ".join(f"{n}: {one:.0f}" for n, one in zip(WIDTHS, medians, strict=True))
        print(f"{Path(model).name}\n  {figures}", flush=True)


if __name__ == "__main__":
    main()
