"""A session's options: those of the core's tables, and those that only Python has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from typing_extensions import TypedDict

from specllama import _check, _core
from specllama._editors import completed
from specllama.errors import ArgumentError
from specllama.model import hub
from specllama.requests.field import Check, Field, described
from specllama.requests.options import GenerateOptions

Path = str | os.PathLike[str]


@completed
class SessionOptions(TypedDict, total=False):
    """Options of a `SpecSession` that concern the model, its memory, its devices and who drafts."""

    n_ctx: int | None
    n_seq: int
    n_batch: int
    n_threads: int | None
    flash_attn: bool | Literal["auto"]
    kv_type: str | None
    exact: bool | Literal["auto"]
    cache_ram: int

    n_gpu_layers: int | Literal["auto", "all"] | None
    n_cpu_moe: int | None
    tensor_split: Sequence[float] | None
    device: str | None
    rpc: str | None

    lora: Path | Sequence[Path | tuple[Path, float]] | Mapping[Any, float] | None
    load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"]
    rope_scaling: Literal["none", "linear", "yarn"] | None
    rope_scale: float | None
    rope_freq_base: float | None
    yarn_orig_ctx: int | None

    spec_length: int | Literal["auto"] | None
    spec_tree: int | Literal["auto", "off"] | None
    cascade: bool
    corpus: Path | None
    verifies: bool
    ngram_order: int
    ngram_window: int
    ngram_max_bytes: int
    ngram_draw: bool

    draft_n_gpu_layers: int | Literal["auto", "all"] | None
    draft_device: str | None
    draft_n_threads: int | None
    draft_kv_type: str | None
    draft_p_min: float
    draft_temperature: float | None
    draft_top_k: int | None
    draft_top_p: float | None
    draft_min_p: float | None


_GROUPS = {
    "n_ctx": "Memory and decoding",
    "n_gpu_layers": "Devices",
    "lora": "Model",
    "spec_length": "Drafting",
    "draft_n_gpu_layers": "Draft model",
}
"""Headings in the documentation, by the first option after each."""


def _adapters(name: str, lora: Any) -> list[_core.LoraAdapter]:
    """Return the LoRA adapters that a value means: a path or a name, several of them or of pairs of
    one and its scale, or scales by path."""
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


_READ: dict[str, Check] = {"lora": _adapters, "rpc": _servers, "corpus": _file}
"""How options are read whose type does not say it."""

_CASCADE = Field(
    "cascade",
    _check.flag,
    "Share the work between n-grams, matches and a draft model when spec_length is auto.",
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

FIELDS: Mapping[str, Field] = {name: _ALL[name] for name in SessionOptions.__annotations__}
"""The table: each option by its name."""

SessionOptions.__doc__ = f"{SessionOptions.__doc__}\n{described(FIELDS, _GROUPS)}\n"


_CALLED = {
    "model_path": "model",
    "draft_model": "draft",
    "chat_format": "chat_template",
    **dict.fromkeys(("num_ctx", "context_length", "max_model_len", "n_context"), "n_ctx"),
    **dict.fromkeys(("n_thread", "num_threads", "n_threads_batch"), "n_threads"),
    **dict.fromkeys(("gpu_layers", "n_gpu_layer"), "n_gpu_layers"),
    **dict.fromkeys(("n_parallel", "parallel", "max_num_seqs"), "n_seq"),
    "n_ubatch": "n_batch",
    "lora_path": "lora",
    "rope_scaling_type": "rope_scaling",
    **dict.fromkeys(("main_gpu", "devices"), "device"),
    **dict.fromkeys(("draft_max", "num_pred_tokens", "num_speculative_tokens"), "spec_length"),
}
_INSTEAD = {
    **dict.fromkeys(("type_k", "type_v"), 'kv_type="q8_0", or "q8_0/q5_1" for keys and values'),
    "use_mlock": 'load_mode="mmap+mlock"',
    "use_mmap": 'load_mode="none" where files are not to be mapped',
    "rope_freq_scale": "rope_scale, which is 1 / rope_freq_scale",
    "last_n_tokens_size": "repeat_last_n, an option of generate",
    "lora_scale": "lora={path: scale}",
}
"""What to give in place of options of llama-cpp-python and others."""


def _unknown(name: str) -> str:
    """Return what to do about a name that is no option of a session."""
    if name in _CALLED:
        return f"{name} is called {_CALLED[name]} here."
    if name in _INSTEAD:
        return f"{name} is not an option here; give {_INSTEAD[name]}."
    if name in GenerateOptions.__annotations__:
        return f"{name} is an option of generate and the others, not of a session."
    return f"There is no option {_check.quoted(name)} of a session."


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options in the form the core takes. Raises ArgumentError for a value of a
    wrong type, and TypeError for a name that is no option."""
    for name in options:
        if name not in FIELDS:
            raise TypeError(_unknown(name))
    return {name: FIELDS[name].check(name, value) for name, value in options.items()}
