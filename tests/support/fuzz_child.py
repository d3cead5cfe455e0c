"""Runs the cases of a fuzz test in a child process: a crash or a hang is one case's result."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_BUSY = 12
"""A machine that is busy may make a case this many times slower."""


def run(file: str, n_cases: int, *arguments: str, seconds: float) -> None:
    """Run `main` of a test file for each case, in one child process as long as none fails.

    Raises AssertionError with the case's number and what the child said, if a case ends the process
    or takes longer than `seconds`.
    """
    child = subprocess.Popen(
        [sys.executable, file, "0", str(n_cases), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )
    assert child.stdout is not None
    case, said = -1, []
    timer = threading.Timer(0, lambda: None)
    try:
        for line in child.stdout:
            timer.cancel()
            timer = threading.Timer(seconds * _BUSY, child.kill)
            timer.start()
            if line.startswith("case "):
                case, said = int(line.split()[1]), []
            said.append(line)
        status = child.wait(seconds * _BUSY)
    finally:
        timer.cancel()
        child.kill()
        child.communicate()
    why = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    assert (status, case) == (0, n_cases), f"case {case} of {n_cases}: {why}\n{''.join(said)}"


def main(run_case: Callable[[int], object]) -> None:
    """Run the cases that the command line names; `run_case` raises what is wrong with one."""
    first, n_cases = int(sys.argv[1]), int(sys.argv[2])
    for i in range(first, n_cases):
        print(f"case {i}", flush=True)
        run_case(i)
    print(f"case {n_cases}", flush=True)


def peak_mib() -> int:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
