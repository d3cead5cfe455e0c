"""Libraries in C that stand before llama.cpp's functions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest

_COMPILER = shutil.which("cc")

needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or _COMPILER is None, reason="needs a C compiler, and Linux's linker"
)


def compiled(name: str, folder: Path) -> Path:
    """The library of a source beside this file."""
    path = folder / f"{name}.so"
    source = Path(__file__).parent / f"{name}.c"
    include = Path(llama_cpp.__file__).parents[1] / "include"
    subprocess.run(
        [str(_COMPILER), "-shared", "-fPIC", f"-I{include}", source, "-o", path, "-ldl"], check=True
    )
    return path
