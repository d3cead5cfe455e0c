"""From the options of a session to its core."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from specllama import _check, _core, hub
from specllama._progress import Progress
from specllama.drafter import Drafter
from specllama.errors import ArgumentError

T = TypeVar("T")

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model that a session without a model uses: it continues Python in the style of the standard
library; good for a try and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""A smaller model of the same vocabulary, to draft for it."""


def open_core(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str] | Drafter | None,
    *,
    n_ctx: int | None,
    n_seq: int,
    n_batch: int,
    n_threads: int | None,
    n_gpu_layers: int | None,
    device: str | None,
    flash_attn: Any,
    kv_type: str | None,
    exact: Any,
    corpus: str | os.PathLike[str] | None,
    spec_length: int | str,
    cascade: bool,
    ngram_order: int,
    ngram_window: int,
    ngram_max_bytes: int,
    ngram_draw: bool,
    draft_n_gpu_layers: int | None,
    draft_device: str | None,
    draft_n_threads: int | None,
    draft_kv_type: str | None,
    draft_p_min: float,
    draft_temperature: float | None,
    draft_top_k: int | None,
    draft_top_p: float | None,
    draft_min_p: float | None,
    progress: Progress,
) -> tuple[_core.Session, str]:
    """Check the options of `SpecSession` and load what they say; arguments and errors are its.

    Returns:
        The core, and the path of the model.
    """
    if not isinstance(flash_attn, (bool, str)) or flash_attn not in ("auto", True, False):
        raise ArgumentError(f'flash_attn must be True, False or "auto", not {flash_attn!r}.')
    if not isinstance(exact, (bool, str)) or exact not in ("auto", True, False):
        raise ArgumentError(f'exact must be True, False or "auto", not {exact!r}.')
    flash = None if flash_attn == "auto" else bool(flash_attn)
    if model is None and isinstance(draft, str) and draft == "auto":
        draft = BUNDLED_DRAFT
    drafter = draft if isinstance(draft, Drafter) else None
    ngram: _core.NGramOptions | None = None
    draft_model: _core.DraftModelOptions | None = None
    if draft is not None and drafter is None:
        ngram = _core.NGramOptions(
            max_order=_check.integer("ngram_order", ngram_order),
            window=_check.integer("ngram_window", ngram_window),
            max_bytes=_check.integer("ngram_max_bytes", ngram_max_bytes, low=0, high=2**62),
            draw=bool(ngram_draw),
        )
        if not isinstance(draft, (str, os.PathLike)):
            raise ArgumentError(
                f'draft must be "auto", "ngram", the path of a GGUF file, a Drafter or None, '
                f"not {draft!r}."
            )
        if draft not in ("auto", "ngram"):
            draft_model = _core.DraftModelOptions(
                path=hub.local_path("draft", draft),
                n_gpu_layers=_optional(
                    _check.integer,
                    "draft_n_gpu_layers",
                    _first(draft_n_gpu_layers, n_gpu_layers),
                ),
                device=_check.text("draft_device", _either(draft_device, _either(device, ""))),
                n_threads=_check.integer(
                    "draft_n_threads", _either(draft_n_threads, _either(n_threads, 0))
                ),
                flash_attn=flash,
                kv_type=_optional(_check.text, "draft_kv_type", _first(draft_kv_type, kv_type)),
                p_min=_check.number("draft_p_min", draft_p_min),
                temperature=_optional(_check.number, "draft_temperature", draft_temperature),
                top_k=_optional(_check.integer, "draft_top_k", draft_top_k),
                top_p=_optional(_check.number, "draft_top_p", draft_top_p),
                min_p=_optional(_check.number, "draft_min_p", draft_min_p),
            )
    path = str(BUNDLED_MODEL) if model is None else hub.local_path("model", model)
    core = _core.Session(
        path=path,
        drafter=drafter,
        ngram=ngram if draft_model is None or cascade else None,
        draft_model=draft_model,
        n_gpu_layers=_optional(_check.integer, "n_gpu_layers", n_gpu_layers),
        device=_check.text("device", _either(device, "")),
        n_ctx=_check.integer("n_ctx", _either(n_ctx, 0)),
        n_seq=_check.integer("n_seq", n_seq),
        n_batch=_check.integer("n_batch", n_batch),
        n_threads=_check.integer("n_threads", _either(n_threads, 0)),
        flash_attn=flash,
        kv_type=_optional(_check.text, "kv_type", kv_type),
        spec_length=None if spec_length == "auto" else _check.integer("spec_length", spec_length),
        corpus="" if corpus is None or draft is None else _check.path("corpus", corpus),
        exact=None if exact == "auto" else bool(exact),
        progress=progress.load(),
    )
    return core, path


def _optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    return None if value is None else check(name, value)


def _first(value: T | None, other: T | None) -> T | None:
    return other if value is None else value


def _either(value: T | None, default: T) -> T:
    return default if value is None else value
