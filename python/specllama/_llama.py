"""Finds the libraries of other packages that the extension uses: llguidance, and libllama in the
version against which the extension was built."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import util
from pathlib import Path

from specllama._build import LLAMA_CPP_PYTHON


def check_version() -> None:
    """Raise `ImportError` unless the installed llama-cpp-python is the one built against."""
    if not LLAMA_CPP_PYTHON:  # llama.cpp is linked into the extension
        return
    # pip writes this folder next to the package. `metadata` takes longer than all other imports.
    if (_package().parent / f"llama_cpp_python-{LLAMA_CPP_PYTHON}.dist-info").is_dir():
        return
    from importlib import metadata

    try:
        installed = metadata.version("llama-cpp-python")
    except metadata.PackageNotFoundError:
        installed = "none"
    if installed != LLAMA_CPP_PYTHON:
        raise ImportError(
            f"specllama was built against llama-cpp-python {LLAMA_CPP_PYTHON}, but {installed} is "
            f"installed; run: pip install llama-cpp-python=={LLAMA_CPP_PYTHON}"
        )


def load() -> None:
    """Load libllama before the extension, so that the process maps one copy of it: the same file
    that llama_cpp loads. Importing llama_cpp itself takes ten times as long."""
    check_version()
    if not LLAMA_CPP_PYTHON:
        return
    added = brief_spinning()
    os.environ.update(added)
    try:
        ctypes.CDLL(str(_library()))
    finally:
        for name in added:
            del os.environ[name]


def _package() -> Path:
    """Return the folder of llama_cpp; a folder that does not exist if it is not installed."""
    spec = util.find_spec("llama_cpp")
    folders = None if spec is None else spec.submodule_search_locations
    return Path(*folders[:1]) if folders else Path("llama_cpp")


def _library() -> Path:
    """Return the file of libllama, by llama_cpp's rules."""
    folder = Path(os.environ.get("LLAMA_CPP_LIB_PATH") or _package() / "lib")
    file = folder / "libllama.so"
    if sys.platform == "darwin" and not file.exists():
        return file.with_suffix(".dylib")
    return file


def brief_spinning() -> dict[str, str]:
    """Return environment variables for GNU OpenMP, which it reads when it is loaded. With them,
    threads that wait for others sleep after some microseconds. By default they spin for
    milliseconds, which slows down the others if other programs also use the CPU. Empty if the user
    has set such a variable."""
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        return {}
    return {"GOMP_SPINCOUNT": "1000"}


def llguidance_path() -> str:
    """Return the file of llguidance's extension module; "" if there is none."""
    spec = util.find_spec("llguidance")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((str(file) for one in folders for file in Path(one).glob("_lib*.so")), "")
