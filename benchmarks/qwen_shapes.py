"""Models with Qwen2.5's shapes and Q4_K_M's weight types, random weights and no vocabulary.
Decodes take as long as with the real files, whose weights are many gigabytes to download.

    python benchmarks/qwen_shapes.py 7b|1.5b OUT.gguf
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

N_VOCAB = 151936
HEAD_SIZE = 128
BLOCK_BYTES = {Type.Q4_K: 144, Type.Q6_K: 210}
SCALES_AT = {Type.Q4_K: (0, 2), Type.Q6_K: (208,)}
"""Byte offsets of a block's float scales; the other bytes may have any value."""
N_BLOCKS = 4096
"""Number of random blocks, which are repeated to fill a matrix."""


@dataclass(frozen=True)
class QwenShape:
    """Sizes of a model; `n_kv_heads` heads of keys and values, the other names as in its header."""

    n_layers: int
    width: int
    n_inner: int
    n_heads: int
    n_kv_heads: int

    def write(self, path: Path) -> Path:
        """Write a GGUF file."""
        file = gguf.GGUFWriter(path, "qwen2")
        file.add_tokenizer_model("no_vocab")
        file.add_vocab_size(N_VOCAB)
        file.add_block_count(self.n_layers)
        file.add_context_length(32768)
        file.add_embedding_length(self.width)
        file.add_feed_forward_length(self.n_inner)
        file.add_head_count(self.n_heads)
        file.add_head_count_kv(self.n_kv_heads)
        file.add_layer_norm_rms_eps(1e-6)
        file.add_rope_freq_base(1e6)
        weights = {kind: self._weights(kind) for kind in BLOCK_BYTES}

        def matrix(name: str, n_in: int, n_out: int, kind: Type = Type.Q4_K) -> None:
            n_bytes = n_in // 256 * BLOCK_BYTES[kind]
            rows = weights[kind][: n_out * n_bytes].reshape(n_out, n_bytes)
            file.add_tensor(f"{name}.weight", rows, raw_dtype=kind)

        def ones(name: str, n: int) -> None:
            file.add_tensor(name, np.ones(n, np.float32))

        heads, kv = self.n_heads * HEAD_SIZE, self.n_kv_heads * HEAD_SIZE
        matrix("token_embd", self.width, N_VOCAB)
        matrix("output", self.width, N_VOCAB, Type.Q6_K)
        ones("output_norm.weight", self.width)
        for i in range(self.n_layers):
            layer = f"blk.{i}."
            half = Type.Q6_K if i % 2 else Type.Q4_K
            ones(f"{layer}attn_norm.weight", self.width)
            ones(f"{layer}ffn_norm.weight", self.width)
            for name, n_out in (("attn_q", heads), ("attn_k", kv), ("attn_v", kv)):
                matrix(layer + name, self.width, n_out, half if name == "attn_v" else Type.Q4_K)
                ones(f"{layer}{name}.bias", n_out)
            matrix(f"{layer}attn_output", heads, self.width)
            matrix(f"{layer}ffn_gate", self.width, self.n_inner)
            matrix(f"{layer}ffn_up", self.width, self.n_inner)
            matrix(f"{layer}ffn_down", self.n_inner, self.width, half)
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_tensors_to_file()
        file.close()
        return path

    def _weights(self, kind: Type) -> NDArray[np.uint8]:
        """Return bytes for the largest matrix. The scales keep sums in the range of half floats."""
        drawn = np.random.default_rng(0).integers(
            0, 256, (N_BLOCKS, BLOCK_BYTES[kind]), dtype=np.uint8
        )
        for at in SCALES_AT[kind]:
            drawn[:, at : at + 2] = np.frombuffer(np.float16(3e-5).tobytes(), np.uint8)
        return np.tile(drawn.ravel(), self.width * N_VOCAB // 256 // N_BLOCKS + 1)


QWEN_SHAPES = {
    "1.5b": QwenShape(28, 1536, 8960, 12, 2),
    "7b": QwenShape(28, 3584, 18944, 28, 4),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a model of a given shape.")
    parser.add_argument("shape", choices=QWEN_SHAPES)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args(argv)
    QWEN_SHAPES[arguments.shape].write(arguments.file)


if __name__ == "__main__":
    main()
