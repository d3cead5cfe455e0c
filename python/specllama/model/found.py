"""Model files on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from specllama import _check, _core
from specllama.errors import SpecllamaError
from specllama.model.hub import SCHEME
from specllama.model.projector import projector_beside

_SNAPSHOT = re.compile(r"models--([^/]+?)--([^/]+)/snapshots/[^/]+/(.+)")


@dataclass(frozen=True)
class Found:
    """A model on this machine.

    Attributes:
        path: The file of the model; the first part if it is split.
        file: Data of the model from its file; None if the file cannot be used.
        error: Why the file cannot be used.
        known_as: Its name in another program; "": it has none.
        projector: The projector next to it; None if there is none.
    """

    path: Path
    file: _core.ModelFile | None
    error: str | None = None
    known_as: str = ""
    projector: Path | None = None

    @property
    def name(self) -> str:
        """The name on the Hub for a downloaded file; else the path, with its name in another
        program."""
        if snapshot := _SNAPSHOT.search(self.path.as_posix()):
            return f"{SCHEME}{snapshot[1]}/{snapshot[2]}/{snapshot[3]}"
        return f"{self.path} ({self.known_as})" if self.known_as else str(self.path)

    def could_draft_for(self, target: Found) -> bool:
        """Whether it has the target's vocabulary and fewer weights and bytes than the target; or is
        a head for the target."""
        mine, theirs = self.file, target.file
        if mine is None or theirs is None or mine.vocabulary != theirs.vocabulary:
            return False
        if mine.head or theirs.head:
            return bool(mine.head) and not theirs.head and _fits(self.path, target.path)
        return (
            mine.can_draft
            and mine.n_parameters < theirs.n_parameters
            and mine.weight_bytes < theirs.weight_bytes
        )


def _fits(head: Path, target: Path) -> bool:
    try:
        _core.check_head(str(head), str(target))
    except SpecllamaError:
        return False
    return True


def look(path: Path, known_as: str = "") -> Found:
    """Read the data of a model from its file."""
    file, why = None, None
    try:
        file = _core.read_model_file(_check.path(repr(str(path)), path))
    except SpecllamaError as error:
        why = str(error)
    projector = None if file is None else projector_beside(str(path))
    return Found(path, file, why, known_as, None if projector is None else Path(projector))
