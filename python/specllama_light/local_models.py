"""The GGUF files in this machine's caches of huggingface_hub, llama.cpp and LM Studio, and Ollama's
models. `specllama.model.found` reads their contents."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

# Folders of models also contain image encoders, statistics, and heads.
_HEADS = ("mtp-", "eagle3-", "dflash-", "dspark-")
_PROJECTOR = "mmproj"
_NOT_MODELS = (_PROJECTOR, "imatrix", *_HEADS)
_OLLAMA_SERVICE = "/usr/share/ollama/.ollama/models"
_OLLAMA_HOST = "registry.ollama.ai"
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_PROJECTOR = "application/vnd.ollama.image.projector"
_OLLAMA_FILES = "blobs"
PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)", re.IGNORECASE)
"""The name of a part of a split model: stem, number, count and suffix."""


def caches() -> list[Path]:
    """Return the folders in which huggingface_hub, llama.cpp and LM Studio keep models, by their
    own rules. Folders in an unknown home directory are left out."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    hub = os.path.join(os.environ.get("HF_HOME") or os.path.join(cache, "huggingface"), "hub")
    places = (
        os.environ.get("HF_HUB_CACHE") or hub,
        os.environ.get("LLAMA_CACHE") or os.path.join(cache, "llama.cpp"),
        "~/Library/Caches/llama.cpp",
        "~/.lmstudio/models",
        "~/.cache/lm-studio/models",
    )
    return [Path(one) for one in map(os.path.expanduser, places) if not one.startswith("~")]


def ollama_folders() -> list[Path]:
    """Return the folders in which Ollama keeps models, by its own rules."""
    places = (os.environ.get("OLLAMA_MODELS") or "~/.ollama/models", _OLLAMA_SERVICE)
    return [Path(one) for one in map(os.path.expanduser, places) if not one.startswith("~")]


def ollama_models(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the models of Ollama in its folders: the name there, such as "llama3:latest", and the
    file. What cannot be read is passed over."""
    for folder in folders:
        for name, models, _ in _of_ollama(folder):
            for file in models:
                yield name, file


def ollama_projector(model: Path) -> Path | None:
    """Return the projector that Ollama keeps with a model in its folder; None: it keeps none, or
    the model is somewhere else."""
    if model.parent.name != _OLLAMA_FILES:
        return None
    found = (one for _, models, one in _of_ollama(model.parent.parent) if model in models and one)
    return next(found, [None])[0]


def _of_ollama(folder: Path) -> Iterator[tuple[str, list[Path], list[Path]]]:
    """Yield what Ollama keeps in a folder: the name there, the files of models and of projectors.
    What cannot be read is passed over."""
    manifests = folder / "manifests"
    for path in sorted(manifests.glob("*/*/*/*")):
        host, owner, model, tag = path.relative_to(manifests).parts
        try:
            layers = json.loads(path.read_bytes())["layers"]
            digests = [(one["mediaType"], str(one["digest"])) for one in layers]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
        if host != _OLLAMA_HOST:
            name = f"{host}/{name}"
        models, projectors = (
            [
                file
                for of, digest in digests
                if of == kind
                and (file := folder / _OLLAMA_FILES / digest.replace(":", "-")).is_file()
            ]
            for kind in (_OLLAMA_MODEL, _OLLAMA_PROJECTOR)
        )
        yield name, models, projectors


def files(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the GGUF files in the folders and their subfolders, each once: the first part of a
    split model, the first name of a file with several names. Unreadable ones are skipped."""
    seen: set[str] = set()
    for folder in folders:
        for place, below, names in os.walk(folder):
            below.sort()
            for name in sorted(names):
                path = os.path.join(place, name)
                if is_first_gguf(name) and (real := os.path.realpath(path)) not in seen:
                    seen.add(real)
                    yield Path(path)


def is_first_gguf(file: str) -> bool:
    """Return whether it is a GGUF file, and the first part if it is split."""
    part = PART.fullmatch(file)
    return file.lower().endswith(".gguf") and (part is None or int(part[2]) == 1)


def is_head(file: str) -> bool:
    """Return whether its name is that of a head, which drafts for a model in the same folder."""
    return any(word in file.rsplit("/", 1)[-1].lower() for word in _HEADS)


def is_projector(file: str) -> bool:
    """Return whether its name is that of a projector (image or sound encoder)."""
    return is_first_gguf(file) and _PROJECTOR in file.rsplit("/", 1)[-1].lower()


def is_beside_models(file: str) -> bool:
    """Return whether its name is that of a file which is not a model by itself."""
    return any(word in file.rsplit("/", 1)[-1].lower() for word in _NOT_MODELS)
