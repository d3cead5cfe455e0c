"""The cost of types of the KV memory: `python benchmarks/bench_memory.py MODEL... [-t N]`.

For each type, with flash attention and, if possible, without, it prints milliseconds of the four
chunks of a prompt of 2048 random tokens, and of decodes of 1, 8 and 16 tokens after it (medians of
four). Uses llama-cpp-python's llama.cpp on the CPU. With `-t 1` they are milliseconds of CPU time,
so that other programs may run at the same time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import llama_cpp
import numpy as np

CHUNK, N_CHUNKS = 512, 4
WIDTHS = (1, 8, 16)
MOST_ROWS = 64
"""Most rows of logits in a decode."""
SETTINGS = (("f16", True), ("f16", False), ("bf16/f16", True), ("f16/bf16", True), ("q8_0", True))
TYPES = {"f16": llama_cpp.GGML_TYPE_F16, "bf16": 30, "q8_0": llama_cpp.GGML_TYPE_Q8_0}


class Decoder:
    """A model with a KV memory of a type, which n_seq sequences share, or with one for each."""

    def __init__(
        self,
        model: str,
        kv_type: str,
        *,
        flash_attn: bool,
        n_threads: int,
        n_ctx: int,
        n_seq: int = 1,
        n_gpu_layers: int = 0,
        unified: bool = True,
    ) -> None:
        # Kept alive, because llama.cpp calls it until the process ends.
        self._quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._quiet, None)
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = n_gpu_layers
        self._clock = time.process_time if n_threads == 1 else time.perf_counter
        self._model = llama_cpp.llama_model_load_from_file(model.encode(), options)
        if not self._model:
            raise SystemExit(f"{model} cannot be loaded.")
        vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(vocab)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = n_ctx
        context.n_seq_max = n_seq
        context.kv_unified = unified
        context.n_batch = context.n_ubatch = CHUNK
        context.n_threads = context.n_threads_batch = n_threads
        context.n_outputs_max = MOST_ROWS
        context.flash_attn_type = int(flash_attn)
        keys, _, values = kv_type.partition("/")
        context.type_k, context.type_v = TYPES[keys], TYPES[values or keys]
        self._context = llama_cpp.llama_init_from_model(self._model, context)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(CHUNK, 0, 1)
        self._rng = np.random.default_rng(3)
        self._n_cached = [0] * n_seq

    def decode(self, n: int, *, logits: bool, sequences: Sequence[int] = (0,)) -> float:
        """Return the milliseconds of a decode of n tokens of each sequence."""
        taken = self.run([(one, logits) for one in sequences for _ in range(n)])
        for one in sequences:
            self._n_cached[one] += n
        return taken

    def run(self, rows: Sequence[tuple[int, bool]]) -> float:
        """Return the milliseconds of a decode of tokens, each the next one of a sequence, with or
        without logits. They stay in the memory; `decode` then counts them, `forget` removes
        them."""
        self._batch.n_tokens = len(rows)
        places = [*self._n_cached]
        tokens = self._rng.integers(0, self._n_vocab, len(rows))
        for row, (sequence, logits) in enumerate(rows):
            self._batch.token[row] = int(tokens[row])
            self._batch.pos[row] = places[sequence]
            self._batch.n_seq_id[row] = 1
            self._batch.seq_id[row][0] = sequence
            self._batch.logits[row] = logits
            places[sequence] += 1
        start = self._clock()
        if llama_cpp.llama_decode(self._context, self._batch) != 0:
            raise SystemExit(f"A decode of {len(rows)} tokens failed.")
        llama_cpp.llama_synchronize(self._context)  # a GPU computes asynchronously
        return 1e3 * (self._clock() - start)

    def forget(self) -> None:
        """Remove from the memory the tokens of `run` that `decode` has not counted."""
        for one, n in enumerate(self._n_cached):
            llama_cpp.llama_memory_seq_rm(self._memory, one, n, -1)

    def again(self, n: int, sequences: Sequence[int] = (0,)) -> float:
        """Return the milliseconds of a decode of n tokens of each sequence, and remove them."""
        milliseconds = self.run([(one, True) for one in sequences for _ in range(n)])
        self.forget()
        return milliseconds

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        print(model)
        for kv_type, flash_attn in SETTINGS:
            decoder = Decoder(
                model,
                kv_type,
                flash_attn=flash_attn,
                n_threads=arguments.t,
                n_ctx=CHUNK * (N_CHUNKS + 1),
            )
            prompt = [decoder.decode(CHUNK, logits=False) for _ in range(N_CHUNKS)]
            decodes = [statistics.median(decoder.again(n) for _ in range(4)) for n in WIDTHS]
            decoder.close()
            name = f"{kv_type}{'' if flash_attn else ', no flash attention'}"
            times = " ".join(f"{one:.0f}" for one in [*prompt, *decodes])
            print(f"  {name:<28}{times}", flush=True)


if __name__ == "__main__":
    main()
