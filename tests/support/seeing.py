"""Sessions of the core whose prompts have images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specllama import SpecSession, _core
from vision_models import Part, VisionModel

ROUNDING: dict[str, Any] = {"kv_type": "f32", "flash_attn": False, "n_threads": 1}
"""The same arithmetic as in MtmdReference."""


def open_seeing(model: VisionModel, draft: Any = None, **options: Any) -> SpecSession:
    """Open a session with a projector."""
    options = {"n_ctx": 1024, "n_gpu_layers": 0, **ROUNDING, **options}
    return SpecSession(model.text, draft, mmproj=model.projector, **options)


def prompt(session: SpecSession, parts: Sequence[Part]) -> _core.MediaPrompt:
    """Return texts and images as a prompt."""
    if not isinstance(parts[0], str):
        parts = ["", *parts]  # for the token that begins a text
    return session._backend.media_prompt(
        [
            session.tokenize(part, add_special=i == 0)
            if isinstance(part, str)
            else _core.Media.audio(part)
            if part.ndim == 1
            else _core.Media.image(part)
            for i, part in enumerate(parts)
        ]
    )


def start(session: SpecSession, parts: Sequence[Part], n: int, **options: Any) -> _core.Stream:
    """Begin an answer of n tokens without an end token."""
    options = {"max_tokens": n, "ignore_eos": True, **options}
    return session._backend.start(prompt(session, parts), _core.GenerateOptions(**options))


def answer(session: SpecSession, parts: Sequence[Part], n: int, **options: Any) -> list[int]:
    return finished(start(session, parts, n, **options)).tokens


def finished(stream: _core.Stream) -> _core.Stream:
    while stream.step() is not None:
        pass
    return stream
