"""Models of given shapes with random weights. A layer takes as long to decode as a real one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

N_VOCAB = 2048
N_CTX = 8192
MOST_WEIGHTS = 700_000_000
"""Weights of all layers at most. A file with all layers of a real model would take long to write,
and the time of a layer does not depend on the others."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a Llama model's layers.

    Attributes:
        n_heads: Attention heads.
        n_kv_heads: Heads of keys and values.
        head_size: Numbers in a head.
        width: Numbers in a token's state (embedding length).
        n_inner: Inner width of the feed-forward network.
    """

    n_heads: int
    n_kv_heads: int
    head_size: int
    width: int
    n_inner: int

    def write(self, path: Path) -> Path:
        """Write a GGUF file with weights in Q4_0."""
        heads, kv = self.n_heads * self.head_size, self.n_kv_heads * self.head_size
        matrices = {
            "attn_q": (heads, self.width),
            "attn_k": (kv, self.width),
            "attn_v": (kv, self.width),
            "attn_output": (self.width, heads),
            "ffn_gate": (self.n_inner, self.width),
            "ffn_up": (self.n_inner, self.width),
            "ffn_down": (self.width, self.n_inner),
        }
        n_layers = max(1, MOST_WEIGHTS // sum(a * b for a, b in matrices.values()))
        file = gguf.GGUFWriter(path, "llama")
        file.add_context_length(N_CTX)
        file.add_embedding_length(self.width)
        file.add_block_count(n_layers)
        file.add_feed_forward_length(self.n_inner)
        file.add_head_count(self.n_heads)
        file.add_head_count_kv(self.n_kv_heads)
        file.add_key_length(self.head_size)
        file.add_value_length(self.head_size)
        file.add_rope_dimension_count(self.head_size)
        file.add_layer_norm_rms_eps(1e-5)
        file.add_vocab_size(N_VOCAB)
        file.add_tokenizer_model("none")
        rng = np.random.default_rng(1)

        def matrix(name: str, rows: int, columns: int) -> None:
            numbers = rng.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)
            packed = gguf.quants.quantize(numbers, Type.Q4_0)
            file.add_tensor(f"{name}.weight", packed, raw_dtype=Type.Q4_0)

        def ones(name: str) -> None:
            file.add_tensor(f"{name}.weight", np.ones(self.width, np.float32))

        matrix("token_embd", N_VOCAB, self.width)
        matrix("output", N_VOCAB, self.width)
        ones("output_norm")
        for layer in range(n_layers):
            ones(f"blk.{layer}.attn_norm")
            ones(f"blk.{layer}.ffn_norm")
            for name, (rows, columns) in matrices.items():
                matrix(f"blk.{layer}.{name}", rows, columns)
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_tensors_to_file()
        file.close()
        return path


SHAPES = {
    "Llama 3 8B": Shape(32, 8, 128, 4096, 14336),
    "Llama 3.2 1B": Shape(32, 8, 64, 2048, 8192),
    "Phi 3 mini": Shape(32, 32, 96, 3072, 8192),
    "Qwen 2.5 7B": Shape(28, 4, 128, 3584, 18944),
    "Qwen 3 0.6B": Shape(16, 8, 128, 1024, 3072),
}
