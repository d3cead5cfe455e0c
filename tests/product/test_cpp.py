"""The tests in C++: see tests/cpp."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from cmake_build import configure, run
from folders import ROOT


def passed(output: str) -> int:
    """Return the number of tests that ran; none of them failed."""
    ran = re.search(r"(\d+) tests, 0 failed", output)
    assert ran is not None, output
    return int(ran[1])


def test_cpp_tests_without_llama_cpp_pass() -> None:
    build = ROOT / "build" / "tests"  # kept, so that only changed files are compiled
    configure(
        ROOT,
        build,
        SPECLLAMA_BUILD_TESTS="ON",
        SPECLLAMA_WERROR="ON" if os.environ.get("CI") else "OFF",
        Python_EXECUTABLE=sys.executable,
    )
    run("cmake", "--build", build, "--target", "specllama_tests")
    assert passed(run("ctest", "--test-dir", build, "--verbose")) > 20


def test_cpp_tests_of_the_installed_library_pass(
    installed_library: Path,
    tmp_path: Path,
    bundled_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(
        ROOT / "tests" / "cpp" / "public",
        tmp_path,
        CMAKE_PREFIX_PATH=installed_library,
        CMAKE_BUILD_TYPE="Release",
        CMAKE_CXX_FLAGS="-Wall -Wextra",
    )
    run("cmake", "--build", tmp_path)
    monkeypatch.setenv("SPECLLAMA_TEST_MODEL", str(bundled_model))
    assert passed(run(tmp_path / "drafter")) > 5
