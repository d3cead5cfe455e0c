"""Writes small random GGUF models of several architectures for the real llama.cpp."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from rewriting import add_value, finish

WIDTH, FFN, N_VOCAB, N_CTX = 128, 128, 96, 1024
HEAD = 64
EOS = 2
WINDOW = 32
"""Sliding window of the Gemma model, in tokens."""

INNER, STATE, RANK, KERNEL = 2 * WIDTH, 16, 32, 4
STATE_SPACE = {
    "ssm.conv_kernel": KERNEL,
    "ssm.inner_size": INNER,
    "ssm.state_size": STATE,
    "ssm.time_step_rank": RANK,
}
"""Sizes of a Mamba layer."""

DELTA_HEADS, DELTA_GROUPS, DELTA_STATE = 4, 2, 32
DELTA_NET = {
    "ssm.conv_kernel": KERNEL,
    "ssm.inner_size": DELTA_HEADS * DELTA_STATE,
    "ssm.state_size": DELTA_STATE,
    "ssm.time_step_rank": DELTA_HEADS,
    "ssm.group_count": DELTA_GROUPS,
}
"""Sizes of a gated delta net: heads of values, heads of keys, and the length of both."""

QWEN35 = (
    {"full_attention_interval": 2}
    | DELTA_NET
    | {"rope.dimension_count": HEAD, "rope.dimension_sections": [11, 11, 10, 0]}
)

FLOATS = ("ffn_gate_inp.weight", "conv1d.weight", "conv.weight", "ssm_a", "_conv_base")
"""Matrices that stay float32, as in real files; the others are Q8_0."""

Tensors = dict[str, NDArray[Any]]


class RandomModel:
    """Draws the tensors of an architecture and writes them; the same seed gives the same file."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: Tensors = {
            "token_embd.weight": 4 * self.matrix(N_VOCAB, WIDTH),
            "output.weight": 3 * self.matrix(N_VOCAB, WIDTH),
            "output_norm.weight": np.ones(WIDTH),
        }

    def matrix(self, *shape: int) -> NDArray[np.float64]:
        return self.rng.standard_normal(shape) * 1.5 / np.sqrt(shape[-1])

    def attention(self, layer: int, inner: int = WIDTH) -> None:
        """inner: total size of all heads."""
        n = f"blk.{layer}."
        self.tensors[n + "attn_norm.weight"] = np.ones(WIDTH)
        for name in ("attn_q", "attn_k", "attn_v"):
            self.tensors[f"{n}{name}.weight"] = self.matrix(inner, WIDTH)
        self.tensors[n + "attn_output.weight"] = self.matrix(WIDTH, inner)

    def state_space(self, layer: int) -> None:
        n = f"blk.{layer}."
        self.tensors[n + "attn_norm.weight"] = np.ones(WIDTH)
        self.tensors[n + "ssm_in.weight"] = self.matrix(2 * INNER, WIDTH)
        self.tensors[n + "ssm_conv1d.weight"] = self.matrix(INNER, KERNEL)
        self.tensors[n + "ssm_conv1d.bias"] = self.matrix(INNER)
        self.tensors[n + "ssm_x.weight"] = self.matrix(RANK + 2 * STATE, INNER)
        self.tensors[n + "ssm_dt.weight"] = self.matrix(INNER, RANK)
        self.tensors[n + "ssm_dt.bias"] = self.matrix(INNER)
        self.tensors[n + "ssm_a"] = -np.abs(self.matrix(INNER, STATE))
        self.tensors[n + "ssm_d"] = self.matrix(INNER)
        self.tensors[n + "ssm_out.weight"] = self.matrix(WIDTH, INNER)

    def delta_net(self, layer: int) -> None:
        n = f"blk.{layer}."
        inner = DELTA_HEADS * DELTA_STATE
        channels = inner + 2 * DELTA_GROUPS * DELTA_STATE
        self.tensors[n + "attn_norm.weight"] = np.ones(WIDTH)
        self.tensors[n + "attn_qkv.weight"] = self.matrix(channels, WIDTH)
        self.tensors[n + "attn_gate.weight"] = self.matrix(inner, WIDTH)
        self.tensors[n + "ssm_conv1d.weight"] = self.matrix(channels, KERNEL)
        self.tensors[n + "ssm_dt.bias"] = self.matrix(DELTA_HEADS)
        self.tensors[n + "ssm_a"] = -np.abs(self.matrix(DELTA_HEADS))
        self.tensors[n + "ssm_beta.weight"] = self.matrix(DELTA_HEADS, WIDTH)
        self.tensors[n + "ssm_alpha.weight"] = self.matrix(DELTA_HEADS, WIDTH)
        self.tensors[n + "ssm_norm.weight"] = np.ones(DELTA_STATE)
        self.tensors[n + "ssm_out.weight"] = self.matrix(WIDTH, inner)

    def feed_forward(self, layer: int, norm: str = "ffn_norm") -> None:
        n = f"blk.{layer}."
        self.tensors[f"{n}{norm}.weight"] = np.ones(WIDTH)
        self.tensors[n + "ffn_gate.weight"] = self.matrix(FFN, WIDTH)
        self.tensors[n + "ffn_up.weight"] = self.matrix(FFN, WIDTH)
        self.tensors[n + "ffn_down.weight"] = self.matrix(WIDTH, FFN)

    def experts(self, layer: int, number: int = 4) -> None:
        """Add a router and so many experts."""
        n = f"blk.{layer}."
        self.tensors[n + "ffn_gate_inp.weight"] = self.matrix(number, WIDTH)
        self.tensors[n + "ffn_gate_exps.weight"] = self.matrix(number, FFN, WIDTH)
        self.tensors[n + "ffn_up_exps.weight"] = self.matrix(number, FFN, WIDTH)
        self.tensors[n + "ffn_down_exps.weight"] = self.matrix(number, WIDTH, FFN)

    def prediction(self, layer: int) -> None:
        """Add what makes a layer an MTP layer."""
        n = f"blk.{layer}.nextn."
        self.tensors[n + "eh_proj.weight"] = self.matrix(WIDTH, 2 * WIDTH)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self.tensors[f"{n}{name}.weight"] = np.ones(WIDTH)

    def write(self, path: Path, architecture: str, layers: int, fields: dict[str, Any]) -> Path:
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_block_count(layers)
        writer.add_context_length(N_CTX)
        writer.add_embedding_length(WIDTH)
        add_words(writer, N_VOCAB)
        usual = {
            "feed_forward_length": FFN,
            "attention.head_count": 2,
            "attention.head_count_kv": 2,
            "attention.layer_norm_rms_epsilon": 1e-5,
        }
        for name, value in (usual | fields).items():
            key = name if name.startswith("tokenizer.") else f"{architecture}.{name}"
            add_value(writer, key, value)
        for name, tensor in self.tensors.items():
            if np.issubdtype(tensor.dtype, np.integer):
                writer.add_tensor(name, tensor)
                continue
            data = np.ascontiguousarray(tensor, np.float32)
            if name.endswith(FLOATS) or data.ndim == 1:
                writer.add_tensor(name, data)
            else:
                blocks = gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0)
                writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        finish(writer)
        return path


def add_words(writer: gguf.GGUFWriter, n_vocab: int) -> None:
    """Add a vocabulary of words w0, w1, ... between the special tokens and a line end."""
    writer.add_tokenizer_model("llama")
    words = [f"\N{LOWER ONE EIGHTH BLOCK}w{i}" for i in range(n_vocab - 4)]
    writer.add_token_list(["<unk>", "<s>", "</s>", *words, "<0x0A>"])
    writer.add_token_scores([0.0] * n_vocab)
    writer.add_token_types([2, 3, 3, *([1] * (n_vocab - 4)), 6])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(EOS)


def dense_model(seed: int, n_layers: int = 2) -> RandomModel:
    """Return a Llama."""
    model = RandomModel(seed)
    for layer in range(n_layers):
        model.attention(layer)
        model.feed_forward(layer)
    return model


def write_dense(path: Path, seed: int = 1, n_layers: int = 2, **fields: Any) -> Path:
    fields = {"rope.dimension_count": HEAD} | fields
    return dense_model(seed, n_layers).write(path, "llama", n_layers, fields)


def write_heads(path: Path, size: int) -> Path:
    """Write a dense model with two heads of `size` numbers, or one of 128."""
    n_heads = 1 if size == WIDTH else 2
    model = RandomModel(1)
    for layer in range(2):
        model.attention(layer, n_heads * size)
        model.feed_forward(layer)
    fields = {
        "attention.head_count": n_heads,
        "attention.head_count_kv": n_heads,
        "attention.key_length": size,
        "attention.value_length": size,
        "rope.dimension_count": size,
    }
    return model.write(path, "llama", 2, fields)


def write_experts(path: Path, n_layers: int = 2, number: int = 4) -> Path:
    """Write a mixture of so many experts, two of which are used for a token."""
    model = RandomModel(2)
    for layer in range(n_layers):
        model.attention(layer)
        model.tensors[f"blk.{layer}.ffn_norm.weight"] = np.ones(WIDTH)
        model.experts(layer, number)
    experts = {"expert_count": number, "expert_used_count": 2}
    return model.write(path, "llama", n_layers, {"rope.dimension_count": HEAD} | experts)


def write_sliding_window(path: Path) -> Path:
    """Write a Gemma 3: five of six layers see only the last WINDOW tokens."""
    model = RandomModel(3)
    for layer in range(6):
        model.attention(layer)
        model.feed_forward(layer)
        n = f"blk.{layer}."
        for name in ("attn_q_norm", "attn_k_norm"):
            model.tensors[f"{n}{name}.weight"] = np.ones(HEAD)
        for name in ("post_attention_norm", "post_ffw_norm"):
            model.tensors[f"{n}{name}.weight"] = np.ones(WIDTH)
    fields = {
        "attention.sliding_window": WINDOW,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
    }
    return model.write(path, "gemma3", 6, fields)


def write_recurrent(path: Path) -> Path:
    """Write a Mamba."""
    model = RandomModel(4)
    for layer in range(2):
        model.state_space(layer)
    fields = STATE_SPACE | {"feed_forward_length": 0, "attention.head_count": 0}
    return model.write(path, "mamba", 2, fields)


def write_hybrid(path: Path) -> Path:
    """Write a Jamba: a state space, then attention."""
    model = RandomModel(6)
    model.state_space(0)
    for name, size in (("dt", RANK), ("b", STATE), ("c", STATE)):
        model.tensors[f"blk.0.ssm_{name}_norm.weight"] = np.ones(size)
    model.attention(1)
    for layer in range(2):
        model.feed_forward(layer)
    return model.write(path, "jamba", 2, STATE_SPACE | {"attention.head_count_kv": [0, 2]})


def write_hybrid_with_snapshots(path: Path, **more: Any) -> Path:
    """Write an LFM2: a short convolution, then attention."""
    model = RandomModel(5)
    del model.tensors["output.weight"], model.tensors["output_norm.weight"]
    model.tensors["token_embd_norm.weight"] = np.ones(WIDTH)
    model.tensors["blk.0.attn_norm.weight"] = np.ones(WIDTH)
    model.tensors["blk.0.shortconv.conv.weight"] = model.matrix(WIDTH, 3)
    model.tensors["blk.0.shortconv.in_proj.weight"] = model.matrix(3 * WIDTH, WIDTH)
    model.tensors["blk.0.shortconv.out_proj.weight"] = model.matrix(WIDTH, WIDTH)
    model.attention(1)
    for name in ("attn_q_norm", "attn_k_norm"):
        model.tensors[f"blk.1.{name}.weight"] = np.ones(HEAD)
    for layer in range(2):
        model.feed_forward(layer)
    fields = {"attention.head_count_kv": [0, 2], "shortconv.l_cache": 3}
    return model.write(path, "lfm2", 2, fields | more)


def write_delta_net(path: Path) -> Path:
    """Write a Qwen 3.5: a gated delta net, then attention with a gate."""
    return delta_net_model(n_predicting=0).write(path, "qwen35", 2, QWEN35)


def delta_net_model(n_predicting: int, n_layers: int = 2) -> RandomModel:
    """Return the same, followed by MTP layers."""
    model = RandomModel(7)
    for layer in range(n_layers + n_predicting):
        if layer < n_layers and layer % 2 == 0:
            model.delta_net(layer)
            continue
        model.attention(layer)
        model.tensors[f"blk.{layer}.attn_q.weight"] = model.matrix(2 * WIDTH, WIDTH)
        for name in ("attn_q_norm", "attn_k_norm"):
            model.tensors[f"blk.{layer}.{name}.weight"] = np.ones(HEAD)
    for layer in range(n_layers + n_predicting):
        model.feed_forward(layer, norm="post_attention_norm")
    for layer in range(n_layers, n_layers + n_predicting):
        model.prediction(layer)
    return model


WRITERS = {
    "dense": write_dense,
    "experts": write_experts,
    "sliding window": write_sliding_window,
    "recurrent": write_recurrent,
    "hybrid": write_hybrid,
    "hybrid with snapshots": write_hybrid_with_snapshots,
    "delta net": write_delta_net,
}

CUTTABLE = {"dense", "experts"}
"""Kinds whose memory can be rewound to any position."""


def words(n: int, seed: int) -> list[int]:
    """Return random tokens."""
    rng = random.Random(seed)
    return [rng.randrange(3, N_VOCAB - 1) for _ in range(n)]
