"""Fuzz tests: the number of cases in a run, a random generator for each case, and child processes.

A case may end its process or hang.
"""

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

import pytest
from processes import HAS_ASAN
from specllama import SpecllamaError

SECONDS = 5.0
"""A case that takes longer counts as hanging."""


def sizes(n: int) -> list[Any]:
    """Return pytest's parameters for `n_cases`: a tenth of `n` in every run, all in a slow one."""
    return [n // 10, pytest.param(n, marks=pytest.mark.slow)]


def case(name: str, index: int) -> random.Random:
    """Return the generator of case `index` of the fuzz test `name`: the same in every run."""
    return random.Random(f"{name} {index}")


_MOST_BYTES = resource.RLIM_INFINITY if HAS_ASAN else 8 << 30
"""Memory limit of a child. ASan reserves terabytes of addresses."""

_SECONDS = (20 if HAS_ASAN else 4) * SECONDS
"""Processor time of a case. On a busy machine, threads that wait for each other use some, too."""

_SECONDS_OF_SILENCE = 6 * _SECONDS
"""A child whose case takes longer, even on a busy machine, is waiting."""

_SCRIPT = """
import sys
sys.path[:0] = {path!r}
import fuzz, {module}
fuzz.work({module}.try_case, {first}, {end}, {folder!r}, {arguments!r})
"""


def failures(file: str, n_cases: int, folder: Path, *arguments: str) -> list[str]:
    """Try cases 0 to n_cases - 1; return what is wrong with each failing one.

    One process tries them all until one fails, so a module may keep objects between cases.

    Args:
        file: File of a module with `try_case(index, folder, *arguments)`, which raises errors that
            are not expected.
        n_cases: Number of cases.
        folder: Folder in which cases may write.
        *arguments: Selects the test, in modules with several.
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
        # A child may write more to stderr than a pipe holds.
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
    because it hung."""
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
    """Record what a case tries before it does; this is shown if it fails."""
    print(*what, file=sys.stderr, flush=True)


@contextmanager
def refusals_allowed() -> Iterator[None]:
    """Allow an exception of specllama whose message is one sentence in our own words."""
    try:
        yield
    except SpecllamaError as error:
        message = str(error)
        if not message.endswith(".") or "\n" in message or "::" in message:
            raise


def work(
    try_case: Callable[..., object], first: int, end: int, folder: str, arguments: tuple[str, ...]
) -> None:
    """Try cases in this process, which ends with the first failing one."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for other output, such as that of the debugger that ggml starts when it aborts
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
