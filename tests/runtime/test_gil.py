"""Python threads continue while the garbage collector frees a model: see freeing_llama.c."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from c_library import compiled, needs_compiler

BEGIN = """
import ctypes, sys

library = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
from specllama import SpecSession, _core
from specllama.session import BUNDLED_MODEL
"""
END = """
print(*(ctypes.c_int.in_dll(library, name).value for name in ("n_freed", "n_freed_with_gil")))
"""

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("freeing_llama", tmp_path_factory.mktemp("library"))


@pytest.mark.parametrize(
    ("script", "n_models"),
    [
        ("session = SpecSession(n_ctx=64, n_threads=1)\ndel session", 2),
        # The stream keeps the session's objects alive.
        ("stream = SpecSession(None, None, n_ctx=64, n_threads=1).stream('x')\ndel stream", 1),
        ("_core.Tokenizer(str(BUNDLED_MODEL))", 1),
    ],
)
def test_the_gil_is_released_while_a_model_is_freed(
    library: Path, script: str, n_models: int
) -> None:
    command = [sys.executable, "-c", BEGIN + script + END, library]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(n_models), "0"]
