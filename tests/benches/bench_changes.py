"""What decodes cost on a GPU, and what it costs to decode another number of tokens than before:

    python tests/benches/bench_changes.py [MODEL.gguf...] [--shapes 7b,1.5b] [-ngl N]

Milliseconds of decodes of n tokens behind 300 others, after four of as many; then of the first to
the fourth decode of a new n, of which the second is the one that a GPU's kernels are recorded in.
Medians, by llama.cpp as llama-cpp-python has it, with flash attention; of the files, and of models
with Qwen2.5's shapes and random weights.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np
from qwen_shapes import QWEN_SHAPES

N_CONTEXT = 300
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 24, 32, 33, 48, 64)
CHANGES = ((1, 2), (1, 4), (1, 8), (1, 16), (8, 1), (8, 7), (16, 1), (4, 5))
N_SETTLING = 4
TURNS = 7


class Decoder:
    """A model whose memory holds N_CONTEXT tokens."""

    def __init__(self, model: str, n_gpu_layers: int) -> None:
        # Kept: llama.cpp calls it as long as there is a process.
        self._quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._quiet, None)
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = n_gpu_layers
        self._model = llama_cpp.llama_model_load_from_file(model.encode(), options)
        if not self._model:
            raise SystemExit(f"{model} cannot be loaded.")
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = 1024
        context.n_batch = context.n_ubatch = 512
        context.n_outputs_max = max(WIDTHS)
        context.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        self._context = llama_cpp.llama_init_from_model(self._model, context)
        self._batch = llama_cpp.llama_batch_init(512, 0, 1)
        self._rng = np.random.default_rng(1)
        self._run(N_CONTEXT, 0, logits=False)

    def milliseconds(self, n: int) -> float:
        """Of a decode of n tokens, which are forgotten afterwards."""
        taken = self._run(n, N_CONTEXT, logits=True)
        memory = llama_cpp.llama_get_memory(self._context)
        llama_cpp.llama_memory_seq_rm(memory, 0, N_CONTEXT, -1)
        return taken

    def settle(self, n: int) -> None:
        for _ in range(N_SETTLING):
            self.milliseconds(n)

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def _run(self, n: int, first: int, *, logits: bool) -> float:
        self._batch.n_tokens = n
        for i, token in enumerate(self._rng.integers(0, self._n_vocab, n)):
            self._batch.token[i] = int(token)
            self._batch.pos[i] = first + i
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
            self._batch.logits[i] = logits
        start = time.perf_counter()
        if llama_cpp.llama_decode(self._context, self._batch) != 0:
            raise SystemExit(f"A decode of {n} tokens failed.")
        llama_cpp.llama_synchronize(self._context)
        return 1e3 * (time.perf_counter() - start)


def show(name: str, decoder: Decoder) -> None:
    print(name)
    for n in WIDTHS:
        decoder.settle(n)
        median = statistics.median(decoder.milliseconds(n) for _ in range(10))
        print(f"  {n:4} tokens {median:8.3f}", flush=True)
    for before, n in CHANGES:
        turns = []
        for _ in range(TURNS):
            decoder.settle(before)
            turns.append([decoder.milliseconds(n) for _ in range(N_SETTLING)])
        medians = (statistics.median(column) for column in zip(*turns[1:], strict=True))
        print(f"  {before:4} -> {n:2} " + "".join(f"{one:8.3f}" for one in medians), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help="GGUF files")
    parser.add_argument("--shapes", default="", help=f"of {', '.join(QWEN_SHAPES)}, by commas")
    parser.add_argument("-ngl", type=int, default=-1, help="layers on the GPU (all)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        decoder = Decoder(model, arguments.ngl)
        show(Path(model).name, decoder)
        decoder.close()
    for name in filter(None, arguments.shapes.split(",")):
        if name not in QWEN_SHAPES:
            parser.error(f"there is no shape {name!r}")
        with tempfile.TemporaryDirectory() as folder:
            decoder = Decoder(str(QWEN_SHAPES[name].write(Path(folder) / "m.gguf")), arguments.ngl)
            show(name, decoder)
            decoder.close()


if __name__ == "__main__":
    main()
