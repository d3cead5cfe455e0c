"""Describes models in the format of Ollama's lists."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import specllama
from specllama.model.found import look
from specllama.server.ollama.endpoint import zulu

VERSION = {"version": "0.13.0", "specllama": specllama.__version__}
"""The version of Ollama whose API is implemented. Clients refuse versions that are too old."""

DEFAULT_TAG = ":latest"
"""A tag that clients may add to a model's name."""

_STARTED = datetime.now(timezone.utc)


def listed(name: str, path: Path, capabilities: Sequence[str]) -> dict[str, Any]:
    """Return a model's entry for lists. Reads its file, which may be slow.

    Args:
        name: The model's name.
        path: The model's file; it may be missing.
        capabilities: The model's capabilities, by Ollama's names.
    """
    file = look(path).file
    architecture, weight_type = (file.architecture, file.weight_type) if file else ("", "")
    n_parameters, size = (file.n_parameters, file.weight_bytes) if file else (0, 0)
    said = (name, architecture, weight_type, n_parameters, size, *capabilities)
    return {
        "name": name,
        "model": name,
        "modified_at": zulu(_STARTED),
        "size": size,
        # Clients remember a model's capabilities by its digest.
        "digest": hashlib.sha256("\0".join(map(str, said)).encode()).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": architecture,
            "families": [architecture],
            "parameter_size": _rounded(n_parameters),
            "quantization_level": weight_type,
        },
    }


def shown(
    entry: dict[str, Any], capabilities: Sequence[str], template: str = "", **info: int
) -> dict[str, Any]:
    """Return a model's description for /api/show.

    Args:
        entry: The result of `listed`.
        capabilities: The model's capabilities.
        template: Its chat template.
        info: Further numbers, by their GGUF keys without the architecture.
    """
    family = entry["details"]["family"]
    return {
        "modified_at": entry["modified_at"],
        "details": entry["details"],
        "template": template,
        "modelfile": "",
        "parameters": "",
        "license": "",
        "capabilities": list(capabilities),
        "model_info": {
            "general.architecture": family,
            "general.basename": entry["name"],
            **{f"{family}.{name}": value for name, value in info.items()},
        },
    }


def _rounded(n_parameters: int) -> str:
    """Return a number of parameters as Ollama writes it, such as 1.5B."""
    if n_parameters >= 1e9:
        return f"{n_parameters / 1e9:.1f}B"
    return f"{n_parameters / 1e6:.2f}M"
