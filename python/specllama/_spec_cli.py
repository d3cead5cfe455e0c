"""The console script `spec-cli`: hands over to the executable that lies in the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def executable() -> Path:
    """Return the path of the executable."""
    from specllama import _build

    return Path(_build.__file__).parent / "bin" / "spec-cli"


def main() -> None:
    """Become `spec-cli`, with this process's arguments."""
    from specllama._llama import check_version

    check_version()
    path = executable()
    os.execv(path, [str(path), *sys.argv[1:]])
