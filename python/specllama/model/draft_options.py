"""How a draft model is loaded, wherever its target is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specllama import _check, _core


def draft_options(
    path: str,
    context: Callable[..., _core.ContextOptions],
    *,
    n_gpu_layers: Any,
    device: Any,
    n_threads: Any,
    kv_type: Any,
    load_mode: str = "auto",
) -> tuple[_core.ModelOptions, _core.ContextOptions]:
    """Check the options of a draft model, and return those of its model and of its context.

    Args:
        path: Its file; "": the target's own layers draft.
        context: Makes the options of its context, given `n_threads` and `kv_type`.
        n_gpu_layers, device, n_threads, kv_type: The arguments of `SpecSession` with these names
            after "draft_"; None: the core's default.
        load_mode: As of `SpecSession`, checked.

    Raises:
        ArgumentError: A value is of a wrong type.
    """
    model = _core.ModelOptions(
        path=path,
        n_gpu_layers=_check.optional(_check.integer, "draft_n_gpu_layers", n_gpu_layers),
        n_cpu_moe=None,
        tensor_split=[],
        device=_check.named("draft_device", _check.first(device, "")),
        # RPC servers are only for the target: a draft that crosses a network gains little.
        rpc="",
        lora=[],
        load_mode=load_mode,
    )
    return model, context(
        n_threads=_check.integer("draft_n_threads", _check.first(n_threads, 0)),
        kv_type=_check.optional(_check.named, "draft_kv_type", kv_type),
    )
