"""Each program in benchmarks/ can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT

BENCHES = sorted((ROOT / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("path", BENCHES, ids=lambda path: path.stem)
def test_every_benchmark_can_be_imported_as_a_program(path: Path) -> None:
    """In a process of its own, without the paths that pytest adds."""
    script = f"import sys; sys.path[0] = {str(path.parent)!r}; import {path.stem}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
