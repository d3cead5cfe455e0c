"""The models that come with the package."""

from __future__ import annotations

from pathlib import Path

from specllama import _core

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model that a session without a model uses: it continues Python in the style of the standard
library; good for a try and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""A smaller model of the same vocabulary, to draft for it."""
