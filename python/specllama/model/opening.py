"""Makes a session of the core from the arguments of `SpecSession`: finds files, chooses the
drafter, loads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from specllama import _check, _core
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.model import hub
from specllama.model.bundled import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.model.projector import projector_beside
from specllama.model.session_options import AUTO, NGRAM, checked


def open_backend(
    model: str | os.PathLike[str] | None,
    draft: str | os.PathLike[str] | Drafter | None,
    options: Mapping[str, Any],
    progress: Callable[[float], None] | None,
    elsewhere: Callable[..., _core.Session] | None = None,
) -> tuple[_core.Session, str]:
    """Load the models and return the core's session and the target's file. Arguments and errors are
    those of `SpecSession`, except for these:

    Args:
        progress: Called with the fraction loaded.
        elsewhere: Makes the session of a remote target, with the arguments of `_core.Session`;
            None: the target is loaded here.
    """
    values = checked(options)
    ngram = _core.NGramOptions(**{name: values.pop(name) for name in NGRAM if name in values})
    cascade = values.pop("cascade", True)
    drafter = draft if isinstance(draft, Drafter) else None
    heads: hub.Heads = "small" if draft == "auto" else "none"
    if draft == hub.DRAFT_OF_THE_REPOSITORY:
        draft, heads = "auto", "any"
    path = ""
    if elsewhere is None:
        # A model with a projector is not exact.
        sees = values.get("mmproj", AUTO) == AUTO and values.get("exact") != _core.Switch.on
        name = BUNDLED_MODEL if model is None else model
        path = hub.local_path("model", name, heads, projector=sees)
        values["mmproj"] = _projector(path) if sees else values.get("mmproj", AUTO)
    if values.get("mmproj") == AUTO:
        values["mmproj"] = ""
    if draft == "auto":
        draft = automatic_draft(path, bundled=model is None) if path else "ngram"
    if draft is None:
        values |= {"corpus": "", "memory": 0, "memory_file": ""}
    draft_path = ""
    if draft not in ("mtp", "ngram") and not (draft is None or isinstance(draft, Drafter)):
        draft_path = hub.local_path("draft", draft)
    core_options = _core.SessionOptions(
        model=path,
        draft_model=draft_path,
        draft_mtp=draft == "mtp",
        **values,
    )
    by_ngrams = draft is not None and drafter is None and (draft == "ngram" or cascade)
    backend = (elsewhere or _core.Session)(
        core_options, drafter=drafter, ngram=ngram if by_ngrams else None, progress=progress
    )
    return backend, path


def _projector(path: str) -> str:
    """Return the projector next to a model's file, and report it on standard error; "" if there is
    none."""
    found = projector_beside(path)
    if found is not None:
        print(
            f"specllama: Using the projector {found}; --no-mmproj leaves it out.",
            file=sys.stderr,
        )
    return found or ""


def automatic_draft(path: str, *, bundled: bool) -> str:
    """Return the drafter that draft="auto" means for a model file. bundled: whether it is the
    bundled model."""
    return _core.automatic_draft(path, bundled_draft=str(BUNDLED_DRAFT) if bundled else "")


def check_draft(draft: Any) -> None:
    """Raise ArgumentError if `draft` is of a wrong type."""
    if not (draft is None or isinstance(draft, (str, os.PathLike, Drafter))):
        raise ArgumentError(
            f'draft must be "auto", "mtp", "ngram", the path of a GGUF file, a Drafter or None, '
            f"not {_check.quoted(draft)}."
        )
