"""The models of files that are on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from specllama import _check, _core
from specllama.errors import SpecllamaError
from specllama.model.hub import SCHEME

_SNAPSHOT = re.compile(r"models--([^/]+?)--([^/]+)/snapshots/[^/]+/(.+)")


@dataclass(frozen=True)
class Found:
    """A model on this machine.

    Attributes:
        path: Its file, the first part if it is split.
        file: What the file says; None if it cannot be used.
        error: Why it cannot be used.
    """

    path: Path
    file: _core.ModelFile | None
    error: str | None = None

    @property
    def name(self) -> str:
        """The name on the Hub of a file that came from there, for others the path."""
        if snapshot := _SNAPSHOT.search(self.path.as_posix()):
            return f"{SCHEME}{snapshot[1]}/{snapshot[2]}/{snapshot[3]}"
        return str(self.path)

    def could_draft_for(self, target: Found) -> bool:
        """Whether it is smaller, in weights and in bytes, with the same vocabulary; or a head that
        reads states of that model's width."""
        mine, theirs = self.file, target.file
        if mine is None or theirs is None or mine.vocabulary != theirs.vocabulary:
            return False
        if mine.reads_width or theirs.reads_width:
            return 0 < mine.reads_width == theirs.tells_width
        return (
            mine.can_draft
            and mine.n_parameters < theirs.n_parameters
            and mine.weight_bytes < theirs.weight_bytes
        )


def look(path: Path) -> Found:
    """Return what a file says about its model."""
    try:
        return Found(path, _core.read_model_file(_check.path("path", path)))
    except SpecllamaError as error:
        return Found(path, None, str(error))
