"""Speed of a session that chooses its number of threads automatically, compared with every fixed
number, while other programs use the processor.

    python benchmarks/bench_threads.py MODEL [-md DRAFT] [--turns 5] [--seconds 10]

Prints, for each kind of load, the tokens per second of each number of threads (medians over turns
in which each runs once), and the automatic speed as a fraction of the best fixed one (of the
medians; then the least and greatest turn). Each measurement generates the same number of tokens.
With a draft model, each round has a draft of 4 tokens, so that all sessions make the same decodes.
With GOMP_SPINCOUNT=300000 in the environment, threads wait for each other as with GNU OpenMP's
default.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from specllama import SpecSession

BUSY = "while True: pass"
PULSING = """
import time
while True:
    end = time.monotonic() + 5
    while time.monotonic() < end: pass
    time.sleep(5)
"""
SESSION = """
import sys
from specllama import SpecSession
with SpecSession(sys.argv[1], draft=None) as session:
    while True: session.generate("def f(x):", max_tokens=256, ignore_eos=True)
"""
AUTO = "auto"


@contextmanager
def load(*programs: str, model: str) -> Iterator[None]:
    """Run Python programs during the block."""
    running = [subprocess.Popen([sys.executable, "-c", one, model]) for one in programs]
    try:
        time.sleep(3 if programs else 0)
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def speed(session: SpecSession, n_tokens: int) -> float:
    """Return the tokens per second of an answer of n_tokens tokens."""
    start = time.monotonic()
    session.generate("def f(x):", max_tokens=n_tokens, ignore_eos=True)
    return n_tokens / (time.monotonic() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("-md", "--draft", help="a draft model (default: plain decoding)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement when quiet")
    arguments = parser.parse_args()
    options: dict[str, Any] = {"n_ctx": 4096, "spec_length": 4 if arguments.draft else "auto"}
    loads = {
        "quiet": (),
        "one busy program": (BUSY,),
        "two": (BUSY, BUSY),
        "one, 5 s of 10": (PULSING,),
        "a second session": (SESSION,),
    }
    with ExitStack() as stack:
        sessions = {
            AUTO: stack.enter_context(SpecSession(arguments.model, arguments.draft, **options))
        }
        for n in range(1, sessions[AUTO].n_threads + 1):
            sessions[str(n)] = stack.enter_context(
                SpecSession(arguments.model, arguments.draft, n_threads=n, **options)
            )
        warm = [speed(session, 32) for session in sessions.values()]
        n_tokens = min(max(round(max(warm) * arguments.seconds), 32), 4000)
        print(f"{n_tokens} tokens each")
        print(f"{'load':18}", *(f"{name:>6}" for name in sessions), "  of best fixed")
        for name, programs in loads.items():
            speeds: dict[str, list[float]] = {one: [] for one in sessions}
            with load(*programs, model=arguments.model):
                for turn in range(arguments.turns):
                    # In both directions, because a processor is faster after a run with one thread.
                    for one in list(sessions)[:: -1 if turn % 2 else 1]:
                        speeds[one].append(speed(sessions[one], n_tokens))
            medians = {one: median(of) for one, of in speeds.items()}
            best = max(medians.keys() - {AUTO}, key=medians.__getitem__)
            shares = sorted(a / b for a, b in zip(speeds[AUTO], speeds[best], strict=True))
            figures = " ".join(f"{value:6.1f}" for value in medians.values())
            share = f"{medians[AUTO] / medians[best]:.2f} ({shares[0]:.2f} to {shares[-1]:.2f})"
            print(f"{name:18} {figures}   {share}", flush=True)


if __name__ == "__main__":
    main()
