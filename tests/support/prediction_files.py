"""Writes MTP layers (multi-token prediction) in a file of their own, and their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from any_model import architectures, write

SHARED = ("token_embd.", "output")
"""Tensors that a file of these layers has a copy of."""


def n_layers(name: str) -> int:
    """Return the number of layers before the MTP layers."""
    values = architectures()[name]["values"]
    layers: int = values["block_count"] - values["nextn_predict_layers"]
    return layers


def in_prediction(name: str, tensor: str) -> bool:
    return tensor.startswith("blk.") and int(tensor.split(".")[1]) >= n_layers(name)


def write_own(folder: Path, name: str) -> Path:
    """Write the model with its MTP layers."""
    return write(folder / "own.gguf", name, architectures()[name])


def write_side(folder: Path, name: str, **values: Any) -> Path:
    """Write these layers alone, like llama.cpp's converter."""
    entry = architectures()[name]
    return write(
        folder / "mtp-side.gguf",
        name,
        entry | {"values": entry["values"] | values},
        kept=lambda tensor: in_prediction(name, tensor) or tensor.startswith(SHARED),
    )


def write_without(folder: Path, name: str) -> Path:
    """Write the model without these layers."""
    entry = architectures()[name]
    n = entry["values"]["block_count"]
    values = {
        key: value[: n_layers(name)] if isinstance(value, list) and len(value) == n else value
        for key, value in entry["values"].items()
    } | {"block_count": n_layers(name), "nextn_predict_layers": None}
    # Shapes are given for "all" layers; this model has fewer.
    tensors = entry["tensors"]
    spread = {
        key.replace("*", ",".join(map(str, range(n)))): shape for key, shape in tensors.items()
    }
    return write(
        folder / "without.gguf",
        name,
        {"values": values, "tensors": spread},
        kept=lambda tensor: not in_prediction(name, tensor),
    )
