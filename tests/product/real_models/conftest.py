"""Sessions of published models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from real_models import MODELS, real_model
from rewriting import write_quantized
from session_options import Open
from specllama import SpecSession


@pytest.fixture(scope="module")
def open_real() -> Iterator[Open]:
    """Opens a model by its short name or path; a session with the same options is opened only
    once."""
    opened: dict[str, SpecSession] = {}

    def open_one(model: str | Path, draft: Any = None, **options: Any) -> SpecSession:
        path = real_model(model) if isinstance(model, str) else model
        if draft in MODELS:
            draft = real_model(draft)
        # One thread: several spinning threads would starve each other on a busy machine.
        options = {"n_ctx": 2048, "n_threads": 1, "n_gpu_layers": 0, "spec_length": 4} | options
        key = repr((path, draft, sorted(options.items())))
        if key not in opened:
            opened[key] = SpecSession(path, draft, **options)
        return opened[key]

    yield open_one
    for session in opened.values():
        session.close()


@pytest.fixture(scope="module")
def exact_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes a copy of a model in Q8_0, once for each model."""
    folder = tmp_path_factory.mktemp("q8_0")

    def copy(name: str) -> Path:
        path: Path = folder / f"{name}.gguf"
        if not path.exists():
            write_quantized(real_model(name), path, "q8_0")
        return path

    return copy
