"""Maps llama-cpp-python's libllama, the version that the extension was built against."""

from __future__ import annotations

from importlib import metadata

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
    if LLAMA_CPP_PYTHON:
        import llama_cpp  # noqa: F401
