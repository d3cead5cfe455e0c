"""The examples run; those in C++ use an installed library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cmake_build import configure, run
from folders import ROOT
from prompts import PROMPTS

EXAMPLES = ROOT / "examples"
PROMPT = PROMPTS["module"]


def said(command: list[str | Path]) -> tuple[str, str]:
    """Return the output of a program and the last line of its stderr."""
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout, process.stderr.splitlines()[-1]


def counted(line: str) -> dict[str, float]:
    """Return the numbers of "drafted 3, accepted 2, ..."."""
    return {
        name: float(number) for name, number in (pair.rsplit(" ", 1) for pair in line.split(", "))
    }


def test_the_cpp_drafter_example_drafts(
    installed_library: Path, tmp_path: Path, bundled_model: Path
) -> None:
    configure(
        EXAMPLES / "drafter",
        tmp_path,
        CMAKE_PREFIX_PATH=installed_library,
        CMAKE_BUILD_TYPE="Release",
        CMAKE_CXX_FLAGS="-Wall -Wextra",
    )
    run("cmake", "--build", tmp_path)
    text, line = said([tmp_path / "drafter", bundled_model, PROMPT])
    assert text.strip()
    numbers = counted(line)
    assert numbers["drafted"] >= numbers["accepted"] > 0
    assert numbers["errors"] == 0


def test_the_python_drafter_example_drafts(bundled_model: Path) -> None:
    text, line = said([sys.executable, EXAMPLES / "drafter.py", bundled_model, PROMPT])
    assert text.strip()
    numbers = counted(line)
    assert numbers["drafted"] >= numbers["accepted"] > 0
    assert numbers["errors"] == 0


def test_the_apply_edit_example_rewrites_a_file(bundled_model: Path, tmp_path: Path) -> None:
    model, file = tmp_path / "chat.gguf", tmp_path / "stack.py"
    template = "{{ messages[0].content }}\n```python\n"
    options = ["--chat-template", template, bundled_model, model]
    run(sys.executable, "-m", "gguf.scripts.gguf_new_metadata", *options)
    file.write_text(PROMPT)
    command: list[str | Path] = [
        sys.executable, EXAMPLES / "apply_edit.py", model, file, "Change nothing.",
    ]  # fmt: skip
    text, line = said(command)
    assert text.strip()
    numbers = counted(line)
    assert numbers["generated"] > 5
    assert numbers["drafted"] >= numbers["accepted"] >= 0


def test_the_apply_edit_example_reports_a_missing_file(bundled_model: Path, tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "apply_edit.py", bundled_model, tmp_path / "none", "x"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.startswith("apply_edit.py: ")
