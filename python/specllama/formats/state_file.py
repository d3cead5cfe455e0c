"""Saved states: the tokens of a conversation and their KV memory, as a file.

The first line has the name of the format and the SHA-256 of the rest. The rest is a line of JSON
with the `Kind`, then the tokens as little-endian int32, then the memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specllama import _check, _files
from specllama.errors import ArgumentError, OutOfMemoryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMAT = b"specllama state 1 "
_MOST_LINE = 4096
_TOKEN_BYTES = 4
_SAMPLES, _SAMPLE_BYTES, _HEAD_BYTES = 64, 4096, 1 << 20


@dataclass(frozen=True)
class Kind:
    """The sessions that can load a state.

    Attributes:
        model: Fingerprint of the model file.
        key: All other properties on which the memory depends, as a text of the core.
    """

    model: str
    key: str


def fingerprint(model: str) -> str:
    """Return a hash of a model file's size, its first megabyte (with the metadata), and samples of
    its weights. For a split model, those of its first part. Raises ArgumentError."""
    digest = hashlib.sha256()
    try:
        with open(model, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(b"%d" % size + file.read(_HEAD_BYTES))
            for i in range(_SAMPLES):
                file.seek(size * i // _SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise ArgumentError(f"{model} can no longer be read: {error.strerror}.") from None
    return digest.hexdigest()


def write(path: Path, kind: Kind, tokens: NDArray[np.int32], memory: NDArray[np.uint8]) -> None:
    """Write a state; see `_files.replacing`.

    Raises:
        SpecllamaError: It cannot be written; the previous content of `path` is kept.
    """
    head = json.dumps({**asdict(kind), "n_tokens": len(tokens)}).encode() + b"\n"
    parts: list[bytes | memoryview] = [head, tokens.astype("<i4").data, memory.data]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with _files.replacing(path) as fresh, open(fresh, "wb") as file:
        file.writelines([_FORMAT, digest.hexdigest().encode(), b"\n", *parts])


def read(path: Path, model: str) -> tuple[str, NDArray[np.int32], NDArray[np.uint8]]:
    """Return the key, the tokens and the memory of a state.

    Args:
        path: The file.
        model: Fingerprint of the model; the state must have been saved with it.

    Raises:
        ArgumentError: The file is missing, damaged, not a saved state, or of another model.
        OutOfMemoryError: It does not fit into main memory.
    """
    import numpy as np

    with _files.opened(path) as file:
        first = file.readline(_MOST_LINE)
        if not first.startswith(_FORMAT):
            raise ArgumentError(f"{path} is not a saved state, or has another version.")
        try:
            rest = file.read()
        except MemoryError:
            raise OutOfMemoryError(f"{path} does not fit into main memory.") from None
    if first != _FORMAT + hashlib.sha256(rest).hexdigest().encode() + b"\n":
        raise ArgumentError(f"{path} is damaged: its checksum does not match.")
    n_head = rest.find(b"\n", 0, _MOST_LINE) + 1
    kind, n_tokens = _head(path, rest[:n_head])
    if kind.model != model:
        raise ArgumentError(f"{path} was saved with another model.")
    if n_tokens > (len(rest) - n_head) // _TOKEN_BYTES:
        raise ArgumentError(f"{path} is damaged: it has fewer than {n_tokens} tokens.")
    tokens = np.frombuffer(rest, "<i4", n_tokens, n_head).astype(np.int32)
    memory = np.frombuffer(rest, np.uint8, offset=n_head + _TOKEN_BYTES * n_tokens)
    return kind.key, tokens, memory


def _head(path: Path, line: bytes) -> tuple[Kind, int]:
    """Return the kind, and the number of tokens, at least 1. Raises ArgumentError."""
    try:
        head = json.loads(line)
        kind, n_tokens = Kind(head["model"], head["key"]), head["n_tokens"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ArgumentError(f"{path} is not a saved state: its head cannot be read.") from None
    texts = (kind.model, kind.key)
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ArgumentError(f"{path} is not a saved state: its head cannot be read.")
    if type(n_tokens) is not int or n_tokens < 1:
        raise ArgumentError(
            f"{path} is not a saved state: n_tokens is {_check.quoted(n_tokens)}, not a whole "
            "number above 0."
        )
    return kind, n_tokens
