"""The projector of a model: the file that encodes its images or sounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from specllama_light.local_models import (
    PART,
    is_beside_models,
    is_first_gguf,
    is_projector,
    ollama_projector,
)

from specllama import _core
from specllama.errors import SpecllamaError

_QUANT = re.compile(r"(?<![a-z0-9])(?:ud[-_])?(?:i?q|bf|f|mxfp|tq)(\d+)[a-z0-9_]*", re.IGNORECASE)
_SNAPSHOTS = "snapshots"
"""In huggingface_hub's cache: the folder that holds a folder for each version of a repository."""


def best_projector(files: Iterable[str], model: str) -> str | None:
    """Return the projector that llama.cpp would choose for a model of a repository: in the model's
    folder, else in the nearest folder above, and there the one with the nearest number of bits;
    None if there is none.

    Args:
        files: Paths of the repository's files.
        model: Path of the model.
    """
    above = PurePosixPath(model).parents
    bits = _bits(model)

    def rank(file: str) -> tuple[int, int, str]:
        return above.index(PurePosixPath(file).parent), abs(_bits(file) - bits), file

    found = (one for one in files if is_projector(one) and PurePosixPath(one).parent in above)
    return min(found, key=rank, default=None)


def projector_beside(model: str) -> str | None:
    """Return the projector next to a model's file, or, in huggingface_hub's cache, in a folder
    above it in the same repository, or in the manifest of a model of Ollama; None if none fits. A
    projector fits if it has the model's width and the model's name. One without a name fits if the
    folder has no other model."""
    path = Path(model)
    kept = ollama_projector(path)
    if kept is not None and _fits(kept, path):
        return str(kept)
    folders = [path.parent]
    if _SNAPSHOTS in path.parts:
        folders += [one for one in path.parent.parents if _SNAPSHOTS in one.parts[:-1]]
    for folder in folders:
        try:
            names = [one for one in os.listdir(folder) if is_first_gguf(one)]
        except OSError:
            continue
        fitting = [one for one in names if is_projector(one) and _names(one, path.name, names)]
        found = best_projector([one for one in fitting if _fits(folder / one, path)], path.name)
        if found is not None:
            return str(folder / found)
    return None


def _names(projector: str, model: str, files: Sequence[str]) -> bool:
    """Whether the name of a projector fits a model."""
    name, own = _stem(projector), _stem(model)
    if name:
        return name in own
    return all(is_beside_models(one) or _stem(one) == own for one in files)


def _stem(file: str) -> str:
    """Return a file's name without its quant and the words that mark it as a projector."""
    part = PART.fullmatch(file)
    name = _QUANT.sub("", part[1] if part else file[: -len(".gguf")])
    words = re.split(r"[-_.]+", name.lower())
    return "-".join(one for one in words if one and one not in ("mmproj", "model"))


def _bits(file: str) -> int:
    found = _QUANT.findall(PurePosixPath(file).name)
    return int(found[-1]) if found else 0


def _fits(projector: Path, model: Path) -> bool:
    try:
        width = _core.read_projector(str(projector)).width
        return width == _core.read_model_file(str(model)).width
    except SpecllamaError:
        return False
