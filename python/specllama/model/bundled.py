"""The models that come with the package."""

from __future__ import annotations

from pathlib import Path

from specllama import _core

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model of a session that names none. It continues Python in the style of the standard library;
good for trying specllama out and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""A smaller model with the same vocabulary, which drafts for BUNDLED_MODEL."""
