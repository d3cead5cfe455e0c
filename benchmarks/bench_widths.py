"""Which decode widths give a token the same bits.

    python benchmarks/bench_widths.py MODEL... [-kv TYPE] [-n N] [--plain] [-ngl N]

Random tokens are decoded several at once (the width) by llama-cpp-python's llama.cpp, and the bits
of all rows of logits are compared. A line is a model and the groups of widths with equal bits. If a
width does not divide the number of tokens, the last decode is narrower. To get other weight types,
or a few layers of a large model, use llama.cpp's quantization:

    llama-quantize --allow-requantize --pure --prune-layers 3,4,5 model.gguf part.gguf Q5_K_M
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import llama_cpp
import numpy as np

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32, 33, 64)
KV_TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}


class Decoder:
    """A model, with flash attention, that decodes the same tokens at any width."""

    def __init__(
        self, model: str, kv_type: str, n_tokens: int, *, plain: bool, n_gpu_layers: int
    ) -> None:
        # Kept alive, because llama.cpp may call it until the process ends.
        self._quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._quiet, None)
        options = llama_cpp.llama_model_default_params()
        options.use_extra_bufts = not plain
        options.n_gpu_layers = n_gpu_layers
        loaded = llama_cpp.llama_model_load_from_file(model.encode(), options)
        if not loaded:
            raise SystemExit(f"{model} cannot be loaded.")
        vocab = llama_cpp.llama_model_get_vocab(loaded)
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(vocab)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = n_tokens + 64
        context.n_batch = context.n_ubatch = max(WIDTHS)
        context.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        context.type_k = context.type_v = KV_TYPES[kv_type]
        self._context = llama_cpp.llama_init_from_model(loaded, context)
        self._batch = llama_cpp.llama_batch_init(max(WIDTHS), 0, 1)
        rng = np.random.default_rng(3)
        self._tokens = rng.integers(0, self._n_vocab, n_tokens)

    def rows(self, width: int) -> list[int]:
        """Return hashes of all rows of logits."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        hashes = []
        for start in range(0, len(self._tokens), width):
            part = self._tokens[start : start + width]
            self._batch.n_tokens = len(part)
            for i, token in enumerate(part):
                self._batch.token[i] = int(token)
                self._batch.pos[i] = start + i
                self._batch.n_seq_id[i] = 1
                self._batch.seq_id[i][0] = 0
                self._batch.logits[i] = 1
            if llama_cpp.llama_decode(self._context, self._batch) != 0:
                raise SystemExit(f"A decode of {len(part)} tokens failed.")
            for i in range(len(part)):
                logits = llama_cpp.llama_get_logits_ith(self._context, i)
                hashes.append(hash(np.ctypeslib.as_array(logits, (self._n_vocab,)).tobytes()))
        return hashes


def groups(decoder: Decoder) -> list[list[int]]:
    """Return the widths, grouped by equal bits."""
    found: list[tuple[list[int], list[int]]] = []
    for width in WIDTHS:
        rows = decoder.rows(width)
        same = next((widths for known, widths in found if known == rows), None)
        if same is None:
            found.append((rows, [width]))
        else:
            same.append(width)
    return [widths for _, widths in found]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-kv", choices=KV_TYPES, default="q8_0", help="type of the KV memory")
    parser.add_argument("-n", type=int, default=64, help="tokens (64)")
    parser.add_argument("--plain", action="store_true", help="do not repack weights")
    parser.add_argument("-ngl", type=int, default=0, help="layers on the GPU, -1: all (0)")
    arguments = parser.parse_args(argv)
    for model in arguments.models:
        decoder = Decoder(
            model, arguments.kv, arguments.n, plain=arguments.plain, n_gpu_layers=arguments.ngl
        )
        lines = (", ".join(map(str, widths)) for widths in groups(decoder))
        print(f"{model}: {' | '.join(lines)}", flush=True)


if __name__ == "__main__":
    main()
