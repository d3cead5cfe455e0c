"""Refusals of model files."""

from __future__ import annotations

from pathlib import Path

import pytest
from specllama import ModelError, SpecSession


def refusal(model: Path | str, draft: Path | str | None = "ngram") -> str:
    """Return the sentence with which a session refuses the files."""
    with pytest.raises(ModelError) as caught:
        SpecSession(model, draft, n_gpu_layers=0, n_threads=1)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message
