"""Makes the core's session for a remote target from the arguments of `SpecSession`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from specllama import _check, _core
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.formats.wire import MOST_DRAFTED
from specllama.model import hub
from specllama.model.opening import open_backend
from specllama.model.session_options import FIELDS, checked
from specllama.remote.link import Link
from specllama.remote.served import Served
from specllama.remote.session import RemoteSession
from specllama.remote.sglang.target import SGLang
from specllama.remote.target import Target
from specllama.remote.target_options import TargetOptions

_HERE = frozenset({
    "n_seq", "spec_length", "spec_tree", "cascade", "corpus", "memory", "memory_file",
    "ngram_order", "ngram_window", "ngram_max_bytes", "ngram_draw", "draft_n_gpu_layers",
    "draft_device", "draft_n_threads", "draft_kv_type", "draft_p_min", "draft_temperature",
    "draft_top_k", "draft_top_p", "draft_min_p", "n_threads",
})  # fmt: skip
"""Options that are set here; all others are set on the server."""
_SGLANG = "sglang+"
_NO_FILES = ("auto", "mtp", "ngram")
T = TypeVar("T")


def open_remote(
    target: TargetOptions,
    draft: str | os.PathLike[str] | Drafter | None,
    options: Mapping[str, Any],
    progress: Callable[[float], None] | None,
) -> tuple[_core.Session, str]:
    """Connect, load the draft model if there is one, and return the session of the core and the
    address of its target. Arguments and errors are those of `SpecSession`, except `progress`: it is
    called with the loaded fraction of the draft model."""
    for name, value in options.items():
        if name not in _HERE and value is not None and _asks(name, value):
            raise ArgumentError(f"{name} is set on the server of the target; leave it out.")
    given = {name: value for name, value in options.items() if name in _HERE}
    # The core would check these only after the connection to the server.
    values = {name: FIELDS[name].default for name in _HERE & FIELDS.keys()} | checked(given)
    _check.integer("n_seq", values["n_seq"], low=1, high=64)
    length: int | None = values["spec_length"]
    if length is not None:
        _check.integer("spec_length", length, low=1, high=64)
    _check_tree(values["spec_tree"] or 1, length)
    is_file = not (draft is None or isinstance(draft, Drafter) or draft in _NO_FILES)

    def connected(*made: Any, **more: Any) -> RemoteSession:
        served = _connected(target, draft if is_file else None)
        return _closing(served, lambda: RemoteSession(served, *made, **more))

    backend, _ = open_backend(None, draft, given, progress, connected)
    return backend, target.url.removeprefix(_SGLANG)


def _connected(options: TargetOptions, draft: Any) -> Target:
    """Return the target. draft: a GGUF file, or None."""
    if not options.url.startswith(_SGLANG):
        if options.tokenizer is not None:
            raise ArgumentError("A specllama server has its own tokenizer; leave it out.")
        link = Link(options.url, options.key, options.timeout)
        return _closing(link, lambda: Served(link))
    if options.tokenizer is None and draft is None:
        raise ArgumentError(
            "An SGLang target needs its vocabulary here: give a GGUF file as draft or tokenizer."
        )
    path = (
        hub.local_path("draft", draft)
        if options.tokenizer is None
        else hub.local_path("tokenizer", options.tokenizer)
    )
    url = options.url.removeprefix(_SGLANG)
    link = Link(url, options.key, options.timeout, kind="an SGLang")
    return _closing(link, lambda: SGLang(link, path))


def _closing(on_failure: Link | Target, make: Callable[[], T]) -> T:
    """Return the result of `make`; if it raises, close a link."""
    try:
        return make()
    except BaseException:
        on_failure.close()
        raise


def _asks(name: str, value: Any) -> bool:
    """Return whether a value of an option differs in effect from the default."""
    field = FIELDS.get(name)
    return field is None or not field.kind or _check.differ(field.check(name, value), field.default)


def _check_tree(candidates: int, spec_length: int | None) -> None:
    _check.integer("spec_tree", candidates, low=1, high=8)
    if spec_length is not None and spec_length * candidates > MOST_DRAFTED:
        raise ArgumentError(
            f"spec_length times spec_tree must be {MOST_DRAFTED} at most, not "
            f"{spec_length * candidates}."
        )
