"""A start imports only what it uses: other packages take longer to load than a small model."""

from __future__ import annotations

import subprocess
import sys

from specllama.session import BUNDLED_MODEL

HEAVY = {
    "asyncio", "concurrent.futures.thread", "httpcore", "importlib.metadata", "jinja2", "llama_cpp",
    "llguidance", "numpy", "ssl", "tqdm", "uvicorn",
}  # fmt: skip


def modules_of(script: str) -> set[str]:
    """Return the modules that a script has imported at its end."""
    show = "\nimport sys; print(*sys.modules, sep='\\n')"
    process = subprocess.run(
        [sys.executable, "-c", script + show], capture_output=True, text=True, check=True
    )
    return set(process.stdout.splitlines())


def test_the_package_imports_nothing_heavy() -> None:
    assert not HEAVY & modules_of("import specllama")


def test_generating_imports_nothing_heavy() -> None:
    script = """
from specllama import SpecSession
with SpecSession(n_threads=1, n_gpu_layers=0, progress=True) as session:
    session.generate("x = ", max_tokens=3)
"""
    assert not HEAVY & modules_of(script)


def test_spec_cli_imports_nothing_heavy() -> None:
    script = f"""
import contextlib, sys
from specllama.commands import spec_cli
sys.argv = ["spec-cli", "-m", {str(BUNDLED_MODEL)!r}, "-p", "x = ", "-n", "3", "-t", "1"]
with contextlib.suppress(SystemExit):
    spec_cli.main()
"""
    assert not HEAVY & modules_of(script)


def test_a_command_imports_no_other_command() -> None:
    script = """
import contextlib
from specllama.__main__ import main
with contextlib.suppress(SystemExit):
    main(["chat", "--help"])
"""
    modules = modules_of(script)
    assert "specllama.commands.chat" in modules
    assert not {"specllama.commands.serve", "specllama.commands.bench"} & modules
    assert not HEAVY & modules


def test_importing_llama_cpp_later_prints_no_log() -> None:
    """llama_cpp sets its own log callback, which would print all messages of llama.cpp."""
    script = """
from specllama import SpecSession
SpecSession(n_threads=1, n_gpu_layers=0).close()
import llama_cpp
with SpecSession(n_threads=1, n_gpu_layers=0) as session:
    session.generate("x", max_tokens=1)
"""
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stderr == ""
