"""Python in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def run_script(script: str) -> tuple[int, str, str]:
    """Run a script that ends within a minute; its exit status, and what it printed and complained.
    (Forking beside threads is what some are about, and what later Pythons warn of.)"""
    process = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr
