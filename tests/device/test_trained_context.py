"""Contexts longer than the training context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_model import write_scripted_model
from specllama import SpecSession


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ({"n_ctx": 256}, False),
        ({"n_ctx": 512}, True),
        ({"n_ctx": 512, "rope_scaling": "linear", "rope_scale": 2.0}, False),
    ],
)
def test_a_context_longer_than_the_training_context_gives_a_note(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], options: dict[str, Any], noted: bool
) -> None:
    write_scripted_model(tmp_path / "m.gguf", ["a", "b"], n_ctx=256)
    with SpecSession(tmp_path / "m.gguf", n_threads=1, n_gpu_layers=0, **options):
        pass
    error = capfd.readouterr().err
    assert ("n_ctx is 512, but the model was trained with 256 tokens" in error) == noted
    assert "llama_context" not in error
