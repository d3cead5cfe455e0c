"""The projector of a model: the file with which it sees or hears."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from specllama_light.local_models import PART, is_beside_models, is_first_gguf, is_projector

from specllama import _core
from specllama.errors import SpecllamaError

_QUANT = re.compile(r"(?<![a-z0-9])(?:ud[-_])?(?:i?q|bf|f|mxfp|tq)(\d+)[a-z0-9_]*", re.IGNORECASE)
_SNAPSHOTS = "snapshots"
"""The folder in huggingface_hub's cache whose folders hold a repository each."""


def best_projector(files: Iterable[str], model: str) -> str | None:
    """Return the projector that llama.cpp takes for a model of a repository: in the model's folder,
    else in the nearest one above, and there of the nearest number of bits; None: there is none.

    Args:
        files: Paths of the repository's files.
        model: That of the model.
    """
    above = PurePosixPath(model).parents
    bits = _bits(model)

    def rank(file: str) -> tuple[int, int, str]:
        return above.index(PurePosixPath(file).parent), abs(_bits(file) - bits), file

    found = (one for one in files if is_projector(one) and PurePosixPath(one).parent in above)
    return min(found, key=rank, default=None)


def projector_beside(model: str) -> str | None:
    """Return the projector next to a model's file, or in a folder above in the same repository of
    huggingface_hub's cache; None: there is none that fits. It fits if its width is the model's and
    it has the model's name, or no name, and the folder no other model."""
    path = Path(model)
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
    """Whether a projector's name says, or leaves open, that it is a model's."""
    name, own = _stem(projector), _stem(model)
    if name:
        return name in own
    return all(is_beside_models(one) or _stem(one) == own for one in files)


def _stem(file: str) -> str:
    """Return a file's name without what says that it is a projector, and of which quant."""
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
