"""CMake as the tests use it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from folders import ROOT

# The folder into which `make` has put cmake and ninja, before all others.
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a build program, check that it succeeds, and return its output. Compilers have a lower
    priority than tests that run at the same time."""
    # Python's sanitizer does not apply to compilers.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.run(
        ["nice", *(str(word) for word in command)],
        cwd=cwd,
        env=env | {"PATH": PATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 0, f"{command}:\n{process.stdout}"
    return process.stdout


def configure(source: Path, build: Path, **variables: str | Path) -> None:
    """Configure a build folder; an existing one keeps its compiled files."""
    ninja = ["-G", "Ninja"] if shutil.which("ninja", path=PATH) else []
    defines = [f"-D{name}={value}" for name, value in variables.items()]
    run("cmake", "-S", source, "-B", build, *ninja, *defines)
