"""Options of the sessions that the tests open, and decode costs for their planners."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specllama import SpecSession
from specllama.model.loaded_model import backend_of

Open = Callable[..., SpecSession]
"""The fixture open_session."""

# Q8_0 weights and Q8_0 KV memory with flash attention on the CPU: logits have the same bits at
# every batch width. One thread, because the bundled model is too small for two, and because
# spinning threads starve each other on a busy machine.
EXACT: dict[str, Any] = {
    "kv_type": "q8_0",
    "flash_attn": True,
    "n_gpu_layers": 0,
    "n_threads": 1,
}

# exact=True requires x86-64; "auto" is the nearest setting on other machines.
EXACT_HERE: bool | str = platform.machine() in ("x86_64", "AMD64") or "auto"
EXACT_FLAG = ["--exact", "on" if EXACT_HERE is True else "auto"]

# Measured times decide the best draft length; a run with a fixed length can be repeated.
FIXED: dict[str, Any] = {"spec_length": 4}


def open_exact(model: Path | None, draft: Any, **options: Any) -> SpecSession:
    """Open a session in which speculation changes no token, on machines that support it."""
    return SpecSession(model, draft, exact=EXACT_HERE, n_threads=1, n_gpu_layers=0, **options)


def learn_costs(session: SpecSession) -> None:
    """Let a session measure decodes, and close it, which stores their costs."""
    with session:
        backend_of(session).decode_seconds()


def believe(file: Path, *seconds: float) -> None:
    """Change a saved curve: decodes of 1, 2, ... tokens take so many seconds. Sessions do not check
    it again if there is only one number, or if the times are long."""
    key, *_ = file.read_text().splitlines()
    file.write_text("\n".join([key, "0 0 0", *map(str, seconds)]))


def believe_wide_decodes_are_free(cache: Path) -> None:
    """Change the saved curves of all sessions: all widths take the same time."""
    for file in cache.glob("*.curve"):
        believe(file, *[0.2] * 65)
