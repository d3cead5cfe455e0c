"""C libraries that replace functions of llama.cpp or of the C library."""

from __future__ import annotations

import os
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
    """Compile a source in the folder c; return the library."""
    path = folder / f"{name}.so"
    source = Path(__file__).parent / "c" / f"{name}.c"
    include = Path(llama_cpp.__file__).parents[1] / "include"
    subprocess.run(
        [str(_COMPILER), "-shared", "-fPIC", f"-I{include}", source, "-o", path, "-ldl"], check=True
    )
    return path


def run_with(library: Path, program: str, *arguments: str, **names: str) -> str:
    """Return the output of a Python program that runs with a library before the C library.

    Args:
        library: See `compiled`.
        program: Source of the program.
        *arguments: Its `sys.argv[1:]`.
        **names: Its environment variables.
    """
    before = os.environ.get("LD_PRELOAD", "")  # a sanitizer's library must come first
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        errors="replace",
        check=True,
        env=os.environ | names | {"LD_PRELOAD": f"{before} {library}".strip()},
    )
    return run.stdout
