"""Turns the arguments of a session whose target is elsewhere into its core."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from specllama import _check, _core
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.formats.wire import MOST_DRAFTED
from specllama.model import hub
from specllama.remote.core import RemoteCore
from specllama.remote.link import Link
from specllama.remote.served import Served
from specllama.remote.sglang.target import SGLang
from specllama.remote.target import Mode, Target

_HERE = frozenset({
    "n_seq", "spec_length", "spec_tree", "cascade", "draft_n_gpu_layers", "draft_device",
    "draft_n_threads", "draft_kv_type", "n_threads", "progress",
})  # fmt: skip
"""Options that are decided here; the server decides all others."""
_SGLANG = "sglang+"
_BATCH = 32
"""Tokens per batch of a draft model: on a CPU, larger batches are hardly faster."""
_MODES: tuple[Mode, ...] = ("auto", "lockstep", "ahead")


@dataclass(frozen=True)
class Way:
    """How requests reach a target elsewhere: three arguments of `SpecSession`."""

    mode: Mode
    key: str | None
    timeout: float

    @classmethod
    def checked(cls, mode: Any, key: Any, timeout: Any) -> Way:
        """Check the arguments. Raises ArgumentError."""
        if not isinstance(mode, str) or mode not in _MODES:
            raise ArgumentError(
                f'target_mode must be "auto", "lockstep" or "ahead", not {_check.quoted(mode)}.'
            )
        seconds = _check.number("target_timeout", timeout)
        if not 0 < seconds < 86400:
            raise ArgumentError(
                f"target_timeout must be above 0 and below a day, not {_check.quoted(timeout)}."
            )
        return cls(mode, None if key is None else _check.text("target_key", key), seconds)


def open_remote(
    target: str,
    way: Way,
    tokenizer: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str] | Drafter | None,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> tuple[RemoteCore, str]:
    """Connect, load a draft model if there is one, and return the session's core and the address of
    its target. Arguments and errors are those of `SpecSession`."""
    for name, value in options.items():
        if name not in _HERE and _check.differ(value, defaults[name]):
            raise ArgumentError(f"{name} is for the server of the target to decide; leave it out.")
    if draft == "mtp":
        raise ArgumentError('draft="mtp" needs the model here; let the server draft so.')
    length = _check.integer_or(
        "spec_length", options["spec_length"], {"auto": None}, low=1, high=64
    )
    is_file = not (draft is None or isinstance(draft, Drafter) or draft in ("auto", "ngram"))
    cheap: Literal["ngram"] | Drafter | None = None
    if isinstance(draft, Drafter):
        cheap = draft
    elif draft is not None and (not is_file or options["cascade"]):
        cheap = "ngram"
    served, mode = _connected(
        _check.text("target", target),
        way.key,
        way.timeout,
        way.mode,
        tokenizer,
        draft if is_file else None,
    )
    try:
        core = RemoteCore(
            served,
            cheap,
            _loader(draft, options) if is_file else None,
            n_seq=_check.integer("n_seq", options["n_seq"], low=1, high=64),
            spec_length=length,
            guesses=_guesses(options["spec_tree"], length),
            mode=mode,
            timeout=way.timeout,
        )
    except BaseException:
        served.close()
        raise
    return core, served.url


def _connected(
    url: str, key: str | None, seconds: float, mode: Mode, tokenizer: Any, draft: Any
) -> tuple[Target, Mode]:
    """Return the target, and the mode of its generations. draft: a GGUF file, or None."""
    if not url.startswith(_SGLANG):
        if tokenizer is not None:
            raise ArgumentError("A specllama server has its own tokenizer; leave it out.")
        link = Link(url, key, seconds)
        return _closing(link, lambda: Served(link)), mode
    if mode == "ahead":
        raise ArgumentError(
            'SGLang waits for drafts; target_mode="ahead" cannot be had of it, leave it out.'
        )
    if tokenizer is None and draft is None:
        raise ArgumentError(
            "A target by SGLang needs its vocabulary here: give a GGUF as draft, or as tokenizer."
        )
    named = ("draft", draft) if tokenizer is None else ("tokenizer", tokenizer)
    path = hub.local_path(*named)
    link = Link(url.removeprefix(_SGLANG), key, seconds, kind="an SGLang")
    return _closing(link, lambda: SGLang(link, path)), "lockstep"


def _closing(link: Link, connect: Callable[[], Target]) -> Target:
    """Return what `connect` returns; if it fails, close the link."""
    try:
        return connect()
    except BaseException:
        link.close()
        raise


def _guesses(spec_tree: int | str, spec_length: int | None) -> int:
    """Return the most guesses at a position, checked."""
    words = {"auto": None, "off": 1}
    guesses = _check.integer_or("spec_tree", spec_tree, words, low=1, high=8) or 1
    if spec_length is not None and spec_length * guesses > MOST_DRAFTED:
        raise ArgumentError(
            f"spec_length times spec_tree must be {MOST_DRAFTED} at most, not "
            f"{spec_length * guesses}."
        )
    return guesses


def _loader(draft: Any, options: Mapping[str, Any]) -> Callable[[int], _core.Session]:
    """Return a function that loads the draft model with a context of n_ctx tokens."""

    def first(*names: str) -> Any:
        return next((options[name] for name in names if options[name] is not None), None)

    layers, threads = options["draft_n_gpu_layers"], first("draft_n_threads", "n_threads")
    kv_type, device = options["draft_kv_type"], options["draft_device"]

    def load(n_ctx: int) -> _core.Session:
        path = hub.local_path("draft", draft)
        return _core.Session(
            _core.SessionOptions(
                model=_core.ModelOptions(
                    path=path,
                    n_gpu_layers=None
                    if layers is None
                    else _check.integer("draft_n_gpu_layers", layers),
                    device="" if device is None else _check.text("draft_device", device),
                    rpc="",
                ),
                context=_core.ContextOptions(
                    n_ctx=n_ctx,
                    n_seq=options["n_seq"],
                    # Small batches: during one, news of a server that goes ahead must wait.
                    n_batch=max(_BATCH, options["n_seq"]),
                    n_threads=0 if threads is None else _check.integer("draft_n_threads", threads),
                    flash_attn=_core.Switch.automatic,
                    kv_type=None if kv_type is None else _check.text("draft_kv_type", kv_type),
                ),
                spec_length=None,
                spec_tree=None,
                draft_model=None,
                corpus="",
                offers=False,
                exact=_core.Switch.off,
            ),
            drafter=None,
            ngram=None,
            progress=options["progress"],
        )

    return load
