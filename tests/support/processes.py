"""Python and spec-cli in a process of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from specllama.commands.spec_cli import executable

HAS_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")

_STATUS = Path("/proc/self/status")


def peak_mib() -> int:
    """Return the most memory that this process has used, in MiB (0 under ASan, which keeps freed
    memory). On Linux, getrusage also counts memory of the process that started it."""
    if HAS_ASAN:
        return 0
    if _STATUS.exists():
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20  # bytes on macOS


def run_script(script: str) -> tuple[int, str, str]:
    """Run a script that ends within a minute; return its exit status, stdout and stderr. (Some
    scripts fork next to threads, of which later versions of Python warn.)"""
    process = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def run_spec_cli(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the executable spec-cli to its end, with these bytes or nothing as its input."""
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [executable(), *arguments], capture_output=True, check=False, timeout=120, **source
    )
