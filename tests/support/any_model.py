"""Small random models of the architectures in tests/data/architectures.json.

For each architecture, that file has the header values that llama.cpp reads from a GGUF, and the
shapes of the tensors that it then requires (found by learn_tensors.py). "blk.0,2.x" are the tensors
x of layers 0 and 2, "blk.*.x" those of all layers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from folders import DATA
from numpy.typing import NDArray
from random_model import add_words
from rewriting import add_value, finish

DATA = DATA / "architectures.json"
N_VOCAB = 128
SPREAD = 0.1
"""Standard deviation of weights. With larger ones, rounding grows too fast from layer to layer."""

USUAL = {
    "context_length": 1024,
    "embedding_length": 128,
    "feed_forward_length": 96,
    "attention.head_count": 2,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.layer_norm_epsilon": 1e-5,
}
"""Values of all architectures without others."""


WITH_STATES = {
    *("mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "falcon-h1", "granitehybrid"),
    *("nemotron_h", "nemotron_h_moe", "plamo2", "lfm2moe", "qwen3next", "qwen35moe"),
    *("kimi-linear", "minimax-01", "deepseek4", "bailingmoe3"),
}
"""Architectures whose memory cannot be rewound; with float weights these cannot be exact."""


def has_states(name: str) -> bool:
    return name.split()[0] in WITH_STATES


def architectures() -> dict[str, Any]:
    """Return name -> {"values": {key: value}, "tensors": {name: shape}}."""
    found: dict[str, Any] = json.loads(DATA.read_text())
    return found


def tensors(shapes: dict[str, list[int]], n_layers: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the name and the shape of each tensor, layer by layer."""
    for name, shape in shapes.items():
        if not name.startswith("blk."):
            yield name, shape
            continue
        _, layers, rest = name.split(".", 2)
        for layer in range(n_layers) if layers == "*" else layers.split(","):
            yield f"blk.{layer}.{rest}", shape


def everything(tensor: str) -> bool:
    return True


def unchanged(tensor: str, data: NDArray[np.float64]) -> NDArray[np.float64]:
    return data


def write(
    path: Path,
    name: str,
    entry: dict[str, Any],
    changed: Callable[[str, NDArray[np.float64]], NDArray[np.float64]] = unchanged,
    kept: Callable[[str], bool] = everything,
) -> Path:
    """Write a model; the same entry gives the same file.

    Args:
        path: Path to write to.
        name: Name of the entry.
        entry: One of `architectures()`.
        changed: Maps the name and the random numbers of each tensor to the numbers to write.
        kept: Returns whether the tensor of a name is written.
    """
    values = USUAL | entry["values"]
    # Several entries may have one architecture: "gemma4 with experts" is a gemma4.
    architecture = name.split()[0]
    writer = gguf.GGUFWriter(path, architecture)
    add_words(writer, N_VOCAB)
    for key, value in values.items():
        if value is not None:
            add_value(writer, f"{architecture}.{key}", value)
    rng = np.random.default_rng(1)
    for tensor, shape in tensors(entry["tensors"], values["block_count"]):
        data = SPREAD * rng.standard_normal(shape[::-1])
        if tensor.endswith("norm.weight"):
            data += 1
        if tensor.endswith("ssm_a"):
            data = -np.abs(data)
        data = changed(tensor, data)
        if kept(tensor):
            writer.add_tensor(tensor, np.ascontiguousarray(data, np.float32))
    finish(writer)
    return path
