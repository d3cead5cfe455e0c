"""A session's options: those of the core's tables, and those that only Python has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from typing_extensions import TypedDict

from specllama import _check, _core
from specllama._field import Check, Field, completed, described
from specllama.errors import ArgumentError
from specllama.model import hub
from specllama.model.foreign_arguments import advice

Path = str | os.PathLike[str]


AUTO = "auto"
"""Use the projector found next to the model, or in its repository."""


@completed
class SessionOptions(TypedDict, total=False):
    """Options of a `SpecSession`: the model, its memory, its devices and its drafters."""

    n_ctx: int | None
    n_seq: int
    n_batch: int
    n_threads: int | None
    flash_attn: bool | Literal["auto"]
    kv_type: str | None
    exact: bool | Literal["auto"]
    cache_ram: int
    ctx_checkpoints: int
    checkpoint_ram: int

    n_gpu_layers: int | Literal["auto", "all"] | None
    n_cpu_moe: int | None
    tensor_split: Sequence[float] | None
    device: str | None
    rpc: str | None

    lora: Path | Sequence[Path | tuple[Path, float]] | Mapping[Any, float] | None
    load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"]
    mmproj: Path | Literal["auto"] | None
    mmproj_offload: bool
    image_min_tokens: int | None
    image_max_tokens: int | None
    rope_scaling: Literal["none", "linear", "yarn"] | None
    rope_scale: float | None
    rope_freq_base: float | None
    yarn_orig_ctx: int | None

    spec_length: int | Literal["auto"] | None
    spec_tree: int | Literal["auto", "off"] | None
    cascade: bool
    corpus: Path | None
    memory: int | Literal["off"] | None
    memory_file: Path | None
    verifies: bool
    ngram_order: int
    ngram_window: int
    ngram_max_bytes: int
    ngram_draw: bool

    draft_type: Literal["auto", "keep", "q4_0", "q4_1", "q8_0", "iq4_nl"]
    draft_n_gpu_layers: int | Literal["auto", "all"] | None
    draft_device: str | None
    draft_n_threads: int | None
    draft_kv_type: str | None
    draft_p_min: float
    draft_temperature: float | None
    draft_top_k: int | None
    draft_top_p: float | None
    draft_min_p: float | None


HEADINGS = {
    "n_ctx": "Memory and decoding",
    "n_gpu_layers": "Devices",
    "lora": "Model",
    "spec_length": "Drafting",
    "draft_type": "Draft model",
}
"""Headings in the documentation, each by the first option below it."""


def _adapters(name: str, lora: Any) -> list[_core.LoraAdapter]:
    """Return the LoRA adapters of a value: a path or name, a list of these or of (path, scale)
    pairs, or a dict with the scale of each."""
    if lora is None:
        return []
    if isinstance(lora, (str, os.PathLike)):
        lora = [lora]
    elif isinstance(lora, Mapping):
        lora = list(lora.items())
    if isinstance(lora, bytes) or not isinstance(lora, Sequence):
        raise ArgumentError(
            f"{name} must be the path of a GGUF file, a list of paths or of pairs of a path and a "
            f"scale, or a dict with the scale of each, not {_check.quoted(lora)}."
        )
    adapters = []
    for one in lora:
        path, scale = one if isinstance(one, tuple) and len(one) == 2 else (one, 1.0)
        adapters.append(
            _core.LoraAdapter(
                path=hub.local_path(f"an adapter in {name}", path),
                scale=_check.number(f"a scale in {name}", scale),
            )
        )
    return adapters


def _servers(name: str, rpc: Any) -> str:
    """Return the RPC servers; "": none."""
    if rpc is None:
        return ""
    if not _check.named(name, rpc):
        raise ArgumentError(
            f'{name} must be "host:port", or several with commas between them, not "".'
        )
    return str(rpc)


def _file(name: str, value: Any) -> str:
    return "" if value is None else _check.path(name, value)


def _projector(name: str, value: Any) -> str:
    """Return the path of a projector, AUTO, or "" (no projector) for None and "none"."""
    if value is None or value == "none":
        return ""
    return AUTO if value == AUTO else hub.local_path(name, value)


_READ: dict[str, Check] = {
    "lora": _adapters,
    "rpc": _servers,
    "corpus": _file,
    "memory_file": _file,
    "mmproj": _projector,
}
"""Readers of the options whose type alone does not decide how they are read."""

_CASCADE = Field(
    "cascade",
    _check.flag,
    "Draft with n-grams and matches as well as with the draft model when spec_length is auto.",
    "flag",
    True,
    "on",
)

NGRAM: Mapping[str, Field] = {one.name: Field.of(one) for one in _core.ngram_options()}
"""Options of the n-gram drafter."""

_ALL = {
    **{one.name: Field.of(one, _READ.get(one.name)) for one in _core.session_options()},
    **NGRAM,
    "cascade": _CASCADE,
}

_ALL["verifies"] = replace(
    _ALL["verifies"], help="Verify drafts made elsewhere; `specllama serve` sets this."
)

_ALL["mmproj"] = replace(
    _ALL["mmproj"], default=AUTO,
    by_default="auto: the one found next to the model, or in its repository; none: text only",
)  # fmt: skip

FIELDS: Mapping[str, Field] = {name: _ALL[name] for name in SessionOptions.__annotations__}
"""The table: each option by its name."""

SessionOptions.__doc__ = f"{SessionOptions.__doc__}\n{described(FIELDS, HEADINGS)}\n"


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options in the form the core takes. Raises ArgumentError for a value of a
    wrong type, and TypeError for an unknown name."""
    for name in options:
        if name not in FIELDS:
            raise TypeError(f"SpecSession has no argument {name!r:.80}: {advice(name, FIELDS)}")
    return {name: FIELDS[name].check(name, value) for name, value in options.items()}
