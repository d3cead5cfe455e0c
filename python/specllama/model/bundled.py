"""The models that come with the package."""

from __future__ import annotations

from pathlib import Path

from specllama import _core

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model of a session without a `model` argument. It continues Python code in the style of the
standard library; good for trying out specllama and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""The draft model for BUNDLED_MODEL: smaller, with the same vocabulary."""
