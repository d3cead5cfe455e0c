"""Writes GGUF files of block drafters: DFlash, DFlash2 and DSpark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from random_model import EOS, HEAD, N_VOCAB, WIDTH, RandomModel, dense_model

KINDS = ("dflash", "dflash2", "dspark")
BLOCK, MASK = 6, 90
RANK = 32
TOP_K = 4
KERNEL, GROUP = 3, 32
"""Of the convolutions: taps, and the number of values that share coefficients."""

LAYERS = [0, 1]
"""Layers of the target whose inputs are read."""

SELECTOR = {
    "conv_kernel_size": KERNEL,
    "conv_group_size": GROUP,
    "selector_rank": RANK,
    "selector_top_k": TOP_K,
}


def block_model(kind: str, *, seed: int = 21, n_layers: int = 2) -> RandomModel:
    """Return a block drafter for the random models of width WIDTH; it uses its target's embeddings
    and output."""
    model = RandomModel(seed)
    tensors = model.tensors
    del tensors["token_embd.weight"], tensors["output.weight"]
    tensors["fc.weight"] = model.matrix(WIDTH, len(LAYERS) * WIDTH)
    tensors["enc.output_norm.weight"] = 1 + 0.3 * model.rng.standard_normal(WIDTH)
    for layer in range(n_layers):
        model.attention(layer)
        model.feed_forward(layer)
        for name in ("attn_q_norm", "attn_k_norm"):
            scale = 1 + 0.3 * model.rng.standard_normal(HEAD)
            tensors[f"blk.{layer}.{name}.weight"] = scale
        if kind == "dflash2":
            for name in ("attn", "ffn"):
                prefix = f"blk.{layer}.{name}_conv"
                tensors[f"{prefix}_base"] = 0.5 * model.rng.standard_normal((2, KERNEL, WIDTH))
                tensors[f"{prefix}_base"][:, 0] += 1
                tensors[f"{prefix}_proj.weight"] = 0.3 * model.matrix(
                    2 * KERNEL * WIDTH // GROUP, WIDTH
                )
    if kind == "dflash2":
        tensors["selector_hidden.weight"] = model.matrix(RANK, WIDTH)
        for name in ("predecessor", "successor"):
            tensors[f"selector_{name}.weight"] = 0.6 * model.rng.standard_normal((N_VOCAB, RANK))
    if kind == "dspark":
        for name in ("w1", "w2"):
            tensors[f"markov_{name}.weight"] = model.rng.standard_normal((N_VOCAB, RANK))
        tensors["conf_proj.weight"] = model.matrix(1, WIDTH + RANK)
        tensors["conf_proj.bias"] = np.array([0.2])
    return model


def write_block(path: Path, kind: str, model: RandomModel | None = None, **fields: Any) -> Path:
    """Write a block drafter; fields that are None are left out."""
    facts: dict[str, Any] = {
        "rope.dimension_count": HEAD,
        "target_layers": LAYERS,
        "block_size": BLOCK,
    }
    if kind == "dflash2":
        facts |= SELECTOR
    model = model or block_model(kind)
    n_layers = sum(name.endswith("attn_norm.weight") for name in model.tensors)
    facts |= {"tokenizer.ggml.mask_token_id": MASK} | fields
    given = {name: value for name, value in facts.items() if value is not None}
    return model.write(path, "dflash", n_layers, given)


def write_target(path: Path, architecture: str) -> Path:
    """Write a target, a Llama or a Qwen 3, that never ends a text."""
    model = dense_model(seed=1)
    model.tensors["output.weight"][EOS] = 0
    for layer in range(2):
        if architecture == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                model.tensors[f"blk.{layer}.{name}.weight"] = np.ones(HEAD)
    return model.write(path, architecture, 2, {"rope.dimension_count": HEAD})


TARGETS = ("llama", "qwen3")
