"""The C++ compiles for macOS with a clang, a libc++ and headers from PyPI."""

from __future__ import annotations

import importlib.util
import sys

import pybind11
import pytest
from cmake_build import configure, run
from folders import ROOT

# As in the wheels: .github/workflows/wheels.yml.
TARGET = "aarch64-macos.13.3"

needs_cross_compiler = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs the package ziglang"
)


@needs_cross_compiler
def test_cpp_sources_compile_for_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    build = ROOT / "build" / "macos"  # kept, so that only changed files are compiled
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(build / "cache"))
    compiler = f"{sys.executable};-m;ziglang;{{}};-target;{TARGET}"
    configure(
        ROOT,
        build,
        CMAKE_SYSTEM_NAME="Darwin",
        CMAKE_SYSTEM_PROCESSOR="arm64",
        CMAKE_C_COMPILER=compiler.format("cc"),
        CMAKE_CXX_COMPILER=compiler.format("c++"),
        # Nothing is linked, because llama.cpp is built for this machine only.
        CMAKE_CXX_LINKER_LAUNCHER="true",
        CMAKE_BUILD_TYPE="Debug",
        SPECLLAMA_PYTHON="ON",
        SPECLLAMA_WERROR="ON",
        Python_EXECUTABLE=sys.executable,
        pybind11_DIR=pybind11.get_cmake_dir(),
    )
    run("cmake", "--build", build)
