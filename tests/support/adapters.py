"""LoRA adapters for GGUF models, and models with an adapter merged into their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from rewriting import copy_fields, finish

Floats = NDArray[np.float32]
CHANGED = ("attn_q", "attn_v", "attn_output", "ffn_gate", "ffn_down")


def weights(model: Path) -> dict[str, Floats]:
    """Return a model's tensors as numbers [n_out, n_in], by name."""
    return {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        for tensor in gguf.GGUFReader(model).tensors
    }


def random_pairs(
    model: Path, rank: int = 4, seed: int = 1, size: float = 0.1
) -> dict[str, tuple[Floats, Floats]]:
    """Return random changes of the matrices CHANGED in all layers: A [rank, n_in] and B [n_out,
    rank] (one pair for each expert in matrices of experts)."""
    rng = np.random.default_rng(seed)
    pairs = {}
    for name, weight in weights(model).items():
        if not any(f".{part}" in name for part in CHANGED) or weight.ndim < 2:
            continue
        *slices, n_out, n_in = weight.shape
        a = rng.normal(0, n_in**-0.5, (*slices, rank, n_in)).astype(np.float32)
        b = rng.normal(0, size, (*slices, n_out, rank)).astype(np.float32)
        pairs[name] = (a, b)
    return pairs


def write_adapter(
    path: Path,
    pairs: dict[str, tuple[Floats, Floats | None]],
    architecture: str = "llama",
    alpha: float = 8.0,
    dtype: type[np.floating[Any]] = np.float32,
    **keys: Any,
) -> Path:
    """Write an adapter like llama.cpp's converter; `keys` replace its own (None: left out)."""
    writer = gguf.GGUFWriter(path, architecture)
    own: dict[str, Any] = {"general.type": "adapter", "adapter.type": "lora"}
    for name, value in (own | {key.replace("__", "."): one for key, one in keys.items()}).items():
        if isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    if "adapter__lora__alpha" not in keys:
        writer.add_float32("adapter.lora.alpha", alpha)
    for name, pair in pairs.items():
        for half, values in zip(("lora_a", "lora_b"), pair, strict=True):
            if values is not None:
                writer.add_tensor(f"{name}.{half}", values.astype(dtype))
    finish(writer)
    return path


def write_merged(
    path: Path,
    model: Path,
    pairs: dict[str, tuple[Floats, Floats]],
    scale: float = 1.0,
    alpha: float = 8.0,
) -> Path:
    """Write a float32 model with W + scale * alpha / rank * B A in place of each W (Hu et al.,
    2021, section 4.1)."""
    writer = gguf.GGUFWriter(path, "llama")
    copy_fields(gguf.GGUFReader(model), writer)
    for name, weight in weights(model).items():
        if name in pairs:
            a, b = pairs[name]
            rank = a.shape[-2]
            weight = weight + np.float32(scale * alpha / rank) * (b @ a)
        writer.add_tensor(name, np.ascontiguousarray(weight, np.float32))
    finish(writer)
    return path
