"""The libraries in other packages that the extension uses: libllama, of the version that it was
built against, and llguidance."""

from __future__ import annotations

import os
from importlib import metadata, util
from pathlib import Path

from specllama._build import LLAMA_CPP_PYTHON


def check_version() -> None:
    """Raise `ImportError` unless the installed llama-cpp-python is the one built against."""
    if not LLAMA_CPP_PYTHON:  # llama.cpp is linked into the extension
        return
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
    """Load libllama before the extension asks for it, so that the process maps one copy of it."""
    check_version()
    if not LLAMA_CPP_PYTHON:
        return
    added = brief_spinning()
    os.environ.update(added)
    try:
        import llama_cpp  # noqa: F401
    finally:
        for name in added:
            del os.environ[name]


def brief_spinning() -> dict[str, str]:
    """Return environment variables with which GNU's OpenMP, when it is loaded, lets threads sleep
    that have waited for others for some microseconds. By default they spin for milliseconds, which
    keeps the others from running where other programs use the processor, too. Empty if the user has
    set such a variable."""
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        return {}
    return {"GOMP_SPINCOUNT": "1000"}


def llguidance_path() -> str:
    """Return the file of llguidance's extension module; "" if there is none."""
    spec = util.find_spec("llguidance")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((str(file) for one in folders for file in Path(one).glob("_lib*.so")), "")
