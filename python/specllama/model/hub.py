"""Models by name: GGUF files of the Hugging Face Hub, downloaded by huggingface_hub into its cache.

A name is `hf://user/repo`, `hf://user/repo:quant` or `hf://user/repo/file.gguf`; the file may be a
glob pattern. A quant selects the same file as llama.cpp's `-hf`: the first whose name contains the
quant, in upper or lower case. Without a quant: Q4_K_M, else Q8_0, else the first file.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from specllama_light.local_models import PART, is_beside_models, is_first_gguf, is_head

from specllama import _check, _core
from specllama.errors import ArgumentError, HubError, ModelError, SpecllamaError
from specllama.model.projector import best_projector

SCHEME = "hf://"
"""Prefix of a name; without it, the text is the path of a file."""

DRAFT_OF_THE_REPOSITORY = SCHEME + "auto"
"""As a draft: the head in the model's own repository, whatever its size, else draft="auto"."""

Heads = Literal["none", "small", "any"]
"""Which head of a model's repository is downloaded with the model. small: one smaller than a tenth
of the model."""

_LEAST_RATIO = 10
"""Smallest ratio of a model's bytes to those of a head that "small" downloads."""

_DEFAULT_QUANTS = ("Q4_K_M", "Q8_0")
_CANNOT_WRITE = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR,
}  # fmt: skip


@dataclass(frozen=True)
class HubName:
    """A repository, and the selection of one of its files.

    Attributes:
        repo: "user/repo".
        quant: E.g. "Q8_0"; None: not given.
        pattern: Glob over the paths of its files; at most one of quant and pattern is given.
    """

    repo: str
    quant: str | None = None
    pattern: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubName:
        """Parse a name, with or without hf://. Raises ArgumentError."""
        match = re.fullmatch(
            r"(?P<repo>\w[\w.-]*/\w[\w.-]*)(:(?P<quant>[\w.-]+)|/(?P<pattern>.+))?",
            text.removeprefix(SCHEME),
            re.ASCII,
        )
        if match is None:
            raise ArgumentError(
                f'"{text}" is not a name of a model on the Hub; give user/repo, user/repo:quant or '
                "user/repo/file.gguf."
            )
        return cls(**match.groupdict())

    def __str__(self) -> str:
        text = SCHEME + self.repo
        if self.quant:
            return f"{text}:{self.quant}"
        return f"{text}/{self.pattern}" if self.pattern else text

    def choose(self, files: Sequence[str]) -> list[str]:
        """Return the file that this name selects; if it is split, all parts in order.

        Args:
            files: Paths of all files of the repository.

        Raises:
            ModelError: No file or several files match, or a part is missing.
        """
        firsts = [file for file in sorted(files) if is_first_gguf(file)]
        models = [file for file in firsts if not is_beside_models(file)]
        if self.pattern:
            found = [file for file in firsts if fnmatch.fnmatchcase(file, self.pattern)]
            if len(found) > 1:
                found = [file for file in found if file in models]
            if len(found) > 1:
                raise ModelError(
                    f'"{self.pattern}" matches {len(found)} files of {self.repo}: {_some(found)}; '
                    "name one."
                )
        else:
            quants = [self.quant] if self.quant else _DEFAULT_QUANTS
            found = [file for quant in quants for file in models if _has_quant(file, quant)]
            if not self.quant:
                found += models
        if not found:
            wish = f'matches "{self.pattern}"' if self.pattern else f"is of type {self.quant}"
            raise ModelError(
                f"No file of {self.repo} {wish}; it has {_some(firsts)}."
                if firsts
                else f"{self.repo} has no GGUF files; look for a repository of the same name that "
                "ends in -GGUF."
            )
        parts = _parts(found[0])
        if missing := [part for part in parts if part not in files]:
            raise ModelError(f"{self.repo} is incomplete: it lacks {_some(missing)}.")
        return parts

    def choose_head(self, files: Sequence[str], model: str) -> str | None:
        """Return the file of a head for the file of a model: that of the model's quant, else Q8_0,
        else the first; None if the repository has no head."""
        heads = [file for file in sorted(files) if is_first_gguf(file) and is_head(file)]
        quant = re.search(r"(?<![A-Za-z0-9])(I?Q\d\w*|BF16|F16|F32)[./-]", model, re.IGNORECASE)
        quants = [*([quant[1]] if quant else []), "Q8_0"]
        found = [file for quant in quants for file in heads if _has_quant(file, quant)]
        return next(iter(found + heads), None)


def local_path(
    name: str,
    value: str | os.PathLike[str],
    heads: Heads = "none",
    *,
    projector: bool = False,
) -> str:
    """Return the path of the GGUF file for an argument, which is a path or a name; see `fetch`.

    Raises:
        ArgumentError: `value` is neither; or it is a path, and `heads` is "any"; or as for `fetch`.
    """
    path = _check.path(name, value)
    if path.startswith(SCHEME):
        return fetch(path, heads, projector=projector)
    if heads == "any":
        raise ArgumentError(
            f'draft="{DRAFT_OF_THE_REPOSITORY}" needs a model named {SCHEME}..., not the file '
            f'{path}; give draft="auto", which finds a head next to the file.'
        )
    if not os.path.lexists(path) and (hint := _hint(name, path)):
        raise ModelError(f"There is no file {path}. {hint}")
    return path


def _hint(name: str, path: str) -> str:
    """Return advice for the path in an argument, if there is no such file and it looks like
    something else; else ""."""
    if re.match("https?://", path):
        return "It looks like a URL: download the file, or name a model of the Hub as hf://..."
    if re.fullmatch(r"[\w.-]+/[\w.-]+(:[\w.-]+)?", path) and not path.endswith(".gguf"):
        return f"If it is a model of the Hugging Face Hub, name it {SCHEME}{path}, or use -hf."
    if re.fullmatch(r"[\w.:-]+", path) and not path.endswith(".gguf"):
        others = '; other drafters are "auto", "ngram" and "mtp"' if name == "draft" else ""
        return (
            f"Give the path of a GGUF file; `specllama models` lists those on this machine{others}."
        )
    return ""


def fetch(name: str, heads: Heads = "none", *, projector: bool = False) -> str:
    """Return the path of a model file. It is downloaded if the cache does not have it.

    Without network, or with HF_HUB_OFFLINE=1, only cached files are found. All parts of a split
    model are downloaded. HF_ENDPOINT, HF_HOME, HF_TOKEN and the other variables of huggingface_hub
    apply; its progress bars appear on a terminal.

    Args:
        name: As described in the module's docstring.
        heads: Which head of the repository to download as well, so that draft="auto" finds it next
            to the model. A line on standard error shows its name and size.
        projector: Also download the repository's projector, so that mmproj="auto" finds it.

    Raises:
        ArgumentError: `name` does not have the form of a name.
        ModelError: The repository or file does not exist or may not be read; or `heads` is "any",
            and the repository has no head.
        HubError: The Hub cannot be reached, the download breaks off or cannot be stored, or
            huggingface_hub is not installed.
    """
    wanted = HubName.parse(name)
    try:
        import huggingface_hub
    except ImportError:
        raise HubError(
            "Models by name need the package huggingface_hub (pip install huggingface_hub)."
        ) from None
    api = huggingface_hub.HfApi(library_name="specllama", library_version=_core.version)
    # The exceptions of huggingface_hub differ between its versions and HTTP libraries.
    try:
        info = api.model_info(
            wanted.repo,
            timeout=huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT,
            files_metadata=projector or heads != "none",
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    except Exception as error:
        cached = _cached(api, wanted)
        if cached is None:
            raise _refusal(error, wanted.repo, f"Asking for the files of {wanted.repo}") from error
        return cached
    parts = wanted.choose(list(sizes))
    is_new = not _is_cached(wanted.repo, parts)
    paths = [_download(api, wanted.repo, part) for part in parts]
    if heads != "none":
        _fetch_head(api, wanted, parts, sizes, heads, is_new=is_new)
    if projector:
        _fetch_projector(api, wanted, parts[0], sizes)
    return paths[0]


def _is_cached(repo: str, files: Sequence[str]) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return all(isinstance(try_to_load_from_cache(repo, file), str) for file in files)


def _download(api: Any, repo: str, file: str) -> str:
    try:
        return str(api.hf_hub_download(repo, file))
    except Exception as error:
        raise _refusal(error, repo, f"The download of {file} from {repo}") from error


def _fetch_head(
    api: Any,
    name: HubName,
    model: Sequence[str],
    sizes: Mapping[str, int],
    heads: Heads,
    *,
    is_new: bool,
) -> None:
    """Download the head of a model's repository, if it has one of an allowed size. is_new: the
    model has just been downloaded."""
    file = name.choose_head(list(sizes), model[0])
    if file is None:
        if heads == "any":
            raise ModelError(
                f"{name.repo} has no file of a head (mtp-, eagle3-, dflash- or dspark-); leave "
                "-hfd auto out, or name another repository."
            )
        return
    parts = _parts(file)
    size = sum(sizes.get(part, 0) for part in parts)
    if _is_cached(name.repo, parts):
        return
    said = f"{file} of {name.repo} ({size / 1e6:.0f} MB), which may draft for the model"
    if heads == "small" and not 0 < size < sum(map(sizes.__getitem__, model)) / _LEAST_RATIO:
        if is_new:
            print(f"specllama: Not downloaded: {said}; -hfd auto downloads it.", file=sys.stderr)
        return
    print(f"specllama: Downloading {said}; --draft ngram leaves it out.", file=sys.stderr)
    try:
        for part in parts:
            _download(api, name.repo, part)
    except SpecllamaError as error:
        if heads == "any":
            raise
        print(f"specllama: {error}", file=sys.stderr)


def _fetch_projector(api: Any, name: HubName, model: str, sizes: Mapping[str, int]) -> None:
    """Download the projector of a model's repository if there is one."""
    file = best_projector(sizes, model)
    if file is None or _is_cached(name.repo, [file]):
        return
    print(
        f"specllama: Downloading {file} of {name.repo} ({sizes[file] / 1e6:.0f} MB), the projector "
        "for images or sounds; --no-mmproj leaves it out.",
        file=sys.stderr,
    )
    try:
        _download(api, name.repo, file)
    except SpecllamaError as error:
        print(f"specllama: {error}", file=sys.stderr)


def _cached(api: Any, name: HubName) -> str | None:
    """Return the path of the cached file that `name` selects; None if there is none."""
    try:
        folder = Path(api.snapshot_download(name.repo, local_files_only=True))
    except Exception as error:
        # huggingface_hub calls a snapshot incomplete if any file of the repository is missing.
        if not hasattr(error, "snapshot_path"):
            return None
        folder = Path(error.snapshot_path)
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    try:
        return str(folder / name.choose(files)[0])
    except ModelError:
        return None


def _refusal(error: Exception, repo: str, action: str) -> SpecllamaError:
    """Convert an error of huggingface_hub."""
    from huggingface_hub import constants, errors

    if isinstance(error, errors.HFValidationError):
        return ArgumentError(f'"{repo}" is not a name of a repository: {_line(error)}.')
    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"{repo} is gated; ask for access at {constants.ENDPOINT}/{repo}, then give your token "
            "in HF_TOKEN or log in with: hf auth login."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError(
            f"There is no repository {repo} at {constants.ENDPOINT}, or it is private and needs "
            "your token in HF_TOKEN."
        )
    # None if the server did not answer.
    response = getattr(error, "response", None)
    if getattr(response, "status_code", None) in (401, 403):
        return ModelError(
            f"{constants.ENDPOINT} does not let you read {repo}; give a valid token in HF_TOKEN or "
            "log in with: hf auth login."
        )
    if isinstance(error, errors.OfflineModeIsEnabled):
        return HubError(
            f"HF_HUB_OFFLINE is set and the cache has no such file of {repo}; unset it to download."
        )
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
        return HubError(f"{action} cannot be stored in {constants.HF_HUB_CACHE}: {error.strerror}.")
    # If there was no connection, the reason is the error's cause.
    cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else None
    return HubError(
        f"{action} failed ({_line(cause or error)}); check the connection to {constants.ENDPOINT} "
        "and try again."
    )


def _line(error: BaseException) -> str:
    """Return the message of an error as a part of a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return (text if len(text) <= 200 else text[:200] + "...").rstrip(".")


def _has_quant(file: str, quant: str) -> bool:
    # Only at the beginning of a word: BF16 must not match F16.
    return bool(re.search(rf"(?<![a-z0-9]){re.escape(quant)}[./-]", file, re.IGNORECASE))


def _parts(file: str) -> list[str]:
    part = PART.fullmatch(file)
    if part is None:
        return [file]
    n = int(part[3])
    return [f"{part[1]}-{i:05}-of-{n:05}{part[4]}" for i in range(1, n + 1)]


def _some(files: Sequence[str]) -> str:
    shown = ", ".join(files[:20])
    return shown if len(files) <= 20 else f"{shown} and {len(files) - 20} more"
