"""The cost of decodes on a GPU, and the cost of changing their width:

    python benchmarks/bench_changes.py MODEL.gguf... [-ngl N]

Prints milliseconds (medians) of decodes of n tokens after 300 others, measured after four decodes
of this width; then of the first four decodes of a new width (a GPU's kernels are recorded in the
second). Uses llama-cpp-python's llama.cpp with flash attention. qwen_shapes.py writes models that
take as long as real ones.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench_memory import Decoder

N_CONTEXT = 300
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64)
CHANGES = ((1, 2), (1, 4), (1, 8), (1, 16), (8, 1), (8, 7), (16, 1), (4, 5))
N_SETTLING = 4
TURNS = 7


def settle(decoder: Decoder, n: int) -> list[float]:
    """Return the milliseconds of N_SETTLING decodes of n tokens."""
    return [decoder.again(n) for _ in range(N_SETTLING)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-ngl", type=int, default=-1, help="layers on the GPU, -1: all (-1)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        decoder = Decoder(
            model, "f16", flash_attn=True, n_threads=2, n_ctx=1024, n_gpu_layers=arguments.ngl
        )
        decoder.decode(N_CONTEXT, logits=False)
        show(Path(model).name, decoder)
        decoder.close()


def show(name: str, decoder: Decoder) -> None:
    print(name)
    for n in WIDTHS:
        settle(decoder, n)
        median = statistics.median(decoder.again(n) for _ in range(10))
        print(f"  {n:4} tokens {median:8.3f}", flush=True)
    for before, n in CHANGES:
        turns = []
        for _ in range(TURNS):
            settle(decoder, before)
            turns.append(settle(decoder, n))
        medians = (statistics.median(column) for column in zip(*turns[1:], strict=True))
        print(f"  {before:4} -> {n:2} " + "".join(f"{one:8.3f}" for one in medians), flush=True)


if __name__ == "__main__":
    main()
