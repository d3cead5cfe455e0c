"""The gain of flash attention on the CPU:

    python benchmarks/bench_attention.py [MODEL.gguf...] [--shapes] [--together] [-t THREADS]

Prints milliseconds with and without flash attention, and their ratio (above 1: faster without), for
prompts of 4096 random tokens and for decodes of 1, 2, 4, 8 and 16 tokens at four positions in them
(medians of four), in turns, with a KV memory in F16. It measures the given files, and with --shapes
models of known shapes with random weights. --together: instead, decodes of eight sequences that
share a memory, 512 tokens each, with different numbers of tokens, and decodes of one of them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench_memory import CHUNK, Decoder
from shapes import SHAPES

PLACES = (1, 2, 4, 8)
"""Chunks of the prompt after which decodes are measured."""
WIDTHS = (1, 2, 4, 8, 16)
TURNS = 4
SEQUENCES = 8


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help="GGUF files")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    parser.add_argument("--shapes", action="store_true", help="also models of known shapes")
    parser.add_argument("--together", action="store_true", help="eight sequences in one memory")
    arguments = parser.parse_args(argv)
    compare = _compare_together if arguments.together else _compare
    for model in arguments.models:
        compare(Path(model).name, model, arguments.t)
    if not arguments.shapes:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            path = shape.write(Path(folder, "model.gguf"))
            compare(f"{name} ({shape})", str(path), arguments.t)


def _compare(name: str, model: str, n_threads: int) -> None:
    print(name, flush=True)
    both = [
        Decoder(model, "f16", flash_attn=flash_attn, n_threads=n_threads, n_ctx=9 * CHUNK)
        for flash_attn in (True, False)
    ]
    for decoder in both:
        decoder.again(1)  # the first decode takes longer
    prompt = [0.0, 0.0]
    for chunk in range(1, PLACES[-1] + 1):
        for i in (chunk % 2, 1 - chunk % 2):
            prompt[i] += both[i].decode(CHUNK, logits=False)
        if chunk not in PLACES:
            continue
        figures = [f"prompt {_ratio(*prompt)}"]
        for width in WIDTHS:
            turns = [[decoder.again(width) for decoder in both] for _ in range(TURNS)]
            figures.append(f"[{width}] {_ratio(*map(statistics.median, zip(*turns, strict=True)))}")
        print(f"  {chunk * CHUNK:5} tokens: " + "  ".join(figures), flush=True)
    for decoder in both:
        decoder.close()


def _compare_together(name: str, model: str, n_threads: int) -> None:
    sequences = range(SEQUENCES)
    both = [
        Decoder(
            model,
            "f16",
            flash_attn=flash_attn,
            n_threads=n_threads,
            n_ctx=(SEQUENCES + 1) * CHUNK,
            n_seq=SEQUENCES,
        )
        for flash_attn in (True, False)
    ]
    for decoder in both:
        for one in sequences:
            decoder.decode(CHUNK, logits=False, sequences=[one])
    figures = []
    for asked, width in ((sequences, 1), (sequences, 4), (sequences[:1], 1), (sequences[:1], 8)):
        turns = [[decoder.again(width, asked) for decoder in both] for _ in range(TURNS)]
        ratio = _ratio(*map(statistics.median, zip(*turns, strict=True)))
        figures.append(f"{len(asked)} x {width} {ratio}")
    print(f"{name}: " + "  ".join(figures), flush=True)
    for decoder in both:
        decoder.close()


def _ratio(flash: float, without: float) -> str:
    return f"{flash:.0f}/{without:.0f}={flash / without:.2f}"


if __name__ == "__main__":
    main()
