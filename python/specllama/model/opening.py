"""From the arguments of `SpecSession` to a session of the core: checks, finds files, loads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from specllama import _check, _core
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.model import hub
from specllama.model.bundled import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.model.draft_options import draft_options


def open_backend(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str] | Drafter | None,
    *,
    n_ctx: int | None,
    n_seq: int,
    n_batch: int,
    n_threads: int | None,
    n_gpu_layers: int | None,
    n_cpu_moe: int | None,
    tensor_split: Any,
    device: str | None,
    rpc: str | None,
    lora: Any,
    load_mode: str,
    rope_scaling: str | None,
    rope_scale: float | None,
    rope_freq_base: float | None,
    yarn_orig_ctx: int | None,
    flash_attn: bool | Literal["auto"],
    kv_type: str | None,
    exact: bool | Literal["auto"],
    corpus: str | os.PathLike[str] | None,
    verifies: bool,
    cache_ram: int,
    spec_length: int | Literal["auto"],
    spec_tree: int | Literal["auto", "off"],
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
    progress: Callable[[float], None] | None,
) -> tuple[_core.Session, str]:
    """Load the models and return the core's session and the target's file. Arguments and errors are
    those of `SpecSession`, except `progress`: it is called with the fraction loaded."""
    context = partial(
        _core.ContextOptions,
        n_ctx=_check.integer("n_ctx", _check.first(n_ctx, 0)),
        n_seq=_check.integer("n_seq", n_seq),
        n_batch=_check.integer("n_batch", n_batch),
        flash_attn=_check.switch("flash_attn", flash_attn),
        rope=_core.RopeOptions(
            scaling=_check.optional(_check.named, "rope_scaling", rope_scaling),
            scale=_check.optional(_check.number, "rope_scale", rope_scale),
            freq_base=_check.optional(_check.number, "rope_freq_base", rope_freq_base),
            yarn_orig_ctx=_check.optional(_check.integer, "yarn_orig_ctx", yarn_orig_ctx),
        ),
    )
    load_mode = _check.named("load_mode", load_mode)
    ngram = _core.NGramOptions(
        max_order=_check.integer("ngram_order", ngram_order),
        window=_check.integer("ngram_window", ngram_window),
        max_bytes=_check.integer("ngram_max_bytes", ngram_max_bytes, low=0, high=2**62),
        draw=_check.flag("ngram_draw", ngram_draw),
    )
    verifies, cascade = _check.flag("verifies", verifies), _check.flag("cascade", cascade)
    drafter = draft if isinstance(draft, Drafter) else None
    path = str(BUNDLED_MODEL) if model is None else hub.local_path("model", model)
    if draft == "auto":
        draft = automatic_draft(path, bundled=model is None)
    draft_path = _draft_path(draft)
    mtp = draft == "mtp"
    target_model = _core.ModelOptions(
        path=path,
        n_gpu_layers=_check.optional(_check.integer, "n_gpu_layers", n_gpu_layers),
        n_cpu_moe=_check.optional(_check.integer, "n_cpu_moe", n_cpu_moe),
        tensor_split=_parts(tensor_split),
        device=_check.named("device", _check.first(device, "")),
        rpc=_servers(rpc),
        lora=_adapters(lora),
        load_mode=load_mode,
    )
    target_context = context(
        n_threads=_check.integer("n_threads", _check.first(n_threads, 0)),
        kv_type=_check.optional(_check.named, "kv_type", kv_type),
    )
    draft_model = None
    if draft_path is not None or mtp:
        layers = _check.optional(_check.integer, "draft_n_gpu_layers", draft_n_gpu_layers)
        its_model, its_context = draft_options(
            draft_path or "",
            context,
            n_gpu_layers=_check.first(layers, n_gpu_layers),
            # With `rpc`, `device` may name devices of those servers, which only the target uses.
            # And a draft model without layers on a GPU needs none.
            device=_check.first(draft_device, device if rpc is None and layers != 0 else None),
            n_threads=_check.first(draft_n_threads, n_threads),
            kv_type=_check.first(draft_kv_type, kv_type),
            load_mode=load_mode,
        )
        draft_model = _core.DraftModelOptions(
            mtp=mtp,
            model=its_model,
            context=its_context,
            p_min=_check.number("draft_p_min", draft_p_min),
            temperature=_check.optional(_check.number, "draft_temperature", draft_temperature),
            top_k=_check.optional(_check.integer, "draft_top_k", draft_top_k),
            top_p=_check.optional(_check.number, "draft_top_p", draft_top_p),
            min_p=_check.optional(_check.number, "draft_min_p", draft_min_p),
        )
    options = _core.SessionOptions(
        model=target_model,
        context=target_context,
        spec_length=_check.integer_or("spec_length", spec_length, {"auto": None}),
        spec_tree=_check.integer_or("spec_tree", spec_tree, {"auto": None, "off": 1}),
        draft_model=draft_model,
        corpus="" if corpus is None or draft is None else _check.path("corpus", corpus),
        verifies=verifies,
        cache_ram=_check.integer("cache_ram", cache_ram),
        exact=_check.switch("exact", exact),
    )
    by_ngrams = draft is not None and drafter is None and (draft_model is None or cascade)
    backend = _core.Session(
        options, drafter=drafter, ngram=ngram if by_ngrams else None, progress=progress
    )
    return backend, path


def check_draft(draft: Any) -> None:
    """Raise ArgumentError if `draft` names no drafter."""
    if not (draft is None or isinstance(draft, (str, os.PathLike, Drafter))):
        raise ArgumentError(
            f'draft must be "auto", "mtp", "ngram", the path of a GGUF file, a Drafter or None, '
            f"not {_check.quoted(draft)}."
        )


def automatic_draft(path: str, *, bundled: bool) -> str:
    """Return what draft="auto" stands for: the path of the bundled draft model, "mtp" or "ngram".

    Args:
        path: The target's file.
        bundled: Whether the target is the bundled model.
    """
    if bundled:
        return str(BUNDLED_DRAFT)
    return "mtp" if _core.brings_head(path) else "ngram"


def _draft_path(draft: Any) -> str | None:
    """Return the file of the draft model, None if there is none."""
    if draft is None or isinstance(draft, Drafter):
        return None
    return None if draft in ("mtp", "ngram") else hub.local_path("draft", draft)


def _parts(tensor_split: Any) -> list[float]:
    """Return what each device gets; empty: what it has room for."""
    if tensor_split is None:
        return []
    if isinstance(tensor_split, (str, bytes)) or not isinstance(tensor_split, Iterable):
        raise ArgumentError(
            f"tensor_split must be a list of numbers, not {_check.quoted(tensor_split)}."
        )
    return [_check.number("tensor_split", part) for part in tensor_split]


def _adapters(lora: Any) -> list[_core.LoraAdapter]:
    """Return the LoRA adapters that an argument means: a path or a name, several of them or of
    pairs of one and its scale, or scales by path."""
    if lora is None:
        return []
    if isinstance(lora, (str, os.PathLike)):
        lora = [lora]
    elif isinstance(lora, Mapping):
        lora = list(lora.items())
    if isinstance(lora, bytes) or not isinstance(lora, Sequence):
        raise ArgumentError(
            "lora must be the path of a GGUF file, a list of paths or of pairs of a path and a "
            f"scale, or a dict with the scale of each, not {_check.quoted(lora)}."
        )
    adapters = []
    for one in lora:
        path, scale = one if isinstance(one, tuple) and len(one) == 2 else (one, 1.0)
        adapters.append(
            _core.LoraAdapter(
                path=hub.local_path("an adapter in lora", path),
                scale=_check.number("a scale in lora", scale),
            )
        )
    return adapters


def _servers(rpc: str | None) -> str:
    """Return the RPC servers; "": none."""
    if rpc is None:
        return ""
    if not _check.named("rpc", rpc):
        raise ArgumentError('rpc must be "host:port", or several with commas between them, not "".')
    return rpc
