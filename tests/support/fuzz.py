"""Fuzz tests: how many cases a run tries, a generator for each, and cases in child processes.

A case may end its process, or hang."""

from __future__ import annotations

import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import processes
import pytest
from specllama import SpecllamaError

SECONDS = 5.0
"""A case that takes longer hangs."""


def sizes(n: int) -> list[Any]:
    """Return pytest's parameters for `n_cases`: a tenth of `n` in every run, all in a slow one."""
    return [n // 10, pytest.param(n, marks=pytest.mark.slow)]


def case(name: str, index: int) -> random.Random:
    """Return the generator of case `index` of the fuzz called `name`: the same in every run."""
    return random.Random(f"{name} {index}")


_HAS_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")

_MOST_BYTES = resource.RLIM_INFINITY if _HAS_ASAN else 8 << 30
"""Memory that a child may ask for. ASan reserves terabytes of addresses."""

_SECONDS = (20 if _HAS_ASAN else 4) * SECONDS
"""Processor time of a case. Threads that wait for each other on a busy machine take some, too."""

_SECONDS_OF_SILENCE = 6 * _SECONDS
"""A child whose case takes longer, on a busy machine, waits for something."""

_SCRIPT = """
import sys
sys.path[:0] = {path!r}
import fuzz, {module}
fuzz.work({module}.try_case, {first}, {end}, {folder!r}, {arguments!r})
"""


def failures(file: str, n_cases: int, folder: Path, *arguments: str) -> list[str]:
    """Try cases 0 to n_cases - 1 and say what is wrong with each one that fails.

    One process tries them all, as long as none fails, so a module may keep what it opens.

    Args:
        file: A module's, whose `try_case` takes an index, a folder and `arguments`. It raises what
            should not be raised.
        n_cases: Number of cases.
        folder: Where the cases may write.
        *arguments: What is tried, where a module has several tests.
    """
    found = []
    first = 0
    while first < n_cases:
        script = _SCRIPT.format(
            path=[str(Path(file).parent), *sys.path],
            module=Path(file).stem,
            first=first,
            end=n_cases,
            folder=str(folder),
            arguments=arguments,
        )
        # What a child writes on stderr may be more than a pipe holds.
        with (folder / "stderr").open("w+") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
            at, waits = _follow(child, first)
            stderr.seek(0)
            complaint = stderr.read()[-3000:]
        if child.returncode == 0:
            break
        how = "it waits for something" if waits else _how(child.returncode)
        found.append(f"case {at}: {how}\n{complaint}")
        first = at + 1
    return found


def _follow(child: subprocess.Popen[bytes], first: int) -> tuple[int, bool]:
    """Wait for the child's end; return the last case that it began, and whether it was killed
    because it waited."""
    assert child.stdout is not None
    at, waits = first, False
    with child:
        while True:
            if not select.select([child.stdout], [], [], _SECONDS_OF_SILENCE)[0]:
                waits = True
                child.kill()
            line = child.stdout.readline()
            if not line:
                break
            at = int(line)
    return at, waits


def _how(code: int) -> str:
    if code == -signal.SIGPROF:
        return f"it takes more than {_SECONDS} seconds of processor time"
    return (
        f"signal {signal.Signals(-code).name}" if code < 0 else "an exception of no class of ours"
    )


def note(*what: object) -> None:
    """Write down what a case tries, before it does: if it fails, that is shown."""
    print(*what, file=sys.stderr, flush=True)


@contextmanager
def refusals_allowed() -> Iterator[None]:
    """Allow an exception of ours, if its message is one sentence in our own words."""
    try:
        yield
    except SpecllamaError as error:
        message = str(error)
        if not message.endswith(".") or "\n" in message or "::" in message:
            raise


def peak_mib() -> int:
    """Return the most memory that this process has had, in MiB; 0 under ASan, which keeps what was
    freed."""
    return 0 if _HAS_ASAN else processes.peak_mib()


def work(
    try_case: Callable[..., object], first: int, end: int, folder: str, arguments: tuple[str, ...]
) -> None:
    """Try cases in this process, which ends with the first that fails."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what others print, such as the debugger that ggml starts when it aborts
    for index in range(first, end):
        print(index, file=out, flush=True)
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            try_case(index, Path(folder), *arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    signal.setitimer(signal.ITIMER_PROF, 0)
    os._exit(0)


VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 3, 40, 64, 65, 10**9, 2**31, 2**63, 10**30, 1e9, 0.5, -0.5,
    1e308, float("nan"), float("inf"), float("-inf"), "", "x", "stop", "\ud800", "\0", "9" * 5000,
    "A" * 200_000, [], [[]], [-1], [10**9], [None], ["x"], [0] * 5000, {}, {"x": 1}, [[1, 2, 3]],
]  # fmt: skip


def mutated(answer: Any, draws: random.Random) -> Any:
    """Return an answer with one to three of its values replaced, dropped or repeated."""
    answer = json.loads(json.dumps(answer))
    for _ in range(draws.choice([1, 1, 1, 2, 3])):
        at = answer
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draws.choice(keys)
            if isinstance(at[key], (dict, list)) and at[key] and draws.random() < 0.6:
                at = at[key]
                continue
            how = draws.random()
            if how < 0.15:
                del at[key]
            elif how < 0.25 and isinstance(at, list):
                at += [at[key]] * draws.choice([1, 2, 100, 5000])
            else:
                at[key] = draws.choice(VALUES)
            break
    return answer
