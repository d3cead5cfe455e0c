"""Time from the start to the first token, compared with llama-server, with the file in the page
cache:

    python benchmarks/bench_start.py MODEL.gguf [--llama-server PROGRAM] [-t THREADS] [--turns N]

`spec-cli` continues a prompt of about eight tokens. `specllama chat -p` answers "hello". Servers
are polled at /health until they answer, then get both requests. All programs are started anew in
each turn, one after another. The columns are minima over the turns:

    /health     seconds from the start of the process until /health answers
    text        until the first token of the continuation
    chat        until the first token of the answer
    later       seconds of a later continuation on the running server
    MiB         peak memory
    own         memory without the file

With `-t 1` the seconds are processor time, so that other programs may run at the same time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specllama.commands.spec_cli import executable

PROMPT = "def fibonacci(n):\n  "
LATER = ("7 apples are on a table", "8 pears are in a basket", "9 plums hang on a tree")
MESSAGE = "hello"
N_TOKENS = 3
COLUMNS = ("/health", "text", "chat", "later", "MiB", "own")


@dataclass
class Process:
    """A measured process.

    Attributes:
        process: The process.
        by_processor: Whether its time is processor time, not wall time.
        began: When it was started, by `time.perf_counter`.
    """

    process: subprocess.Popen[bytes]
    by_processor: bool
    began: float

    def seconds(self) -> float:
        """Return the seconds since it was started."""
        if self.by_processor:
            return time.clock_gettime((~self.process.pid << 3) | 2)  # its CPU clock, on Linux
        return time.perf_counter() - self.began

    def mebibytes(self) -> dict[str, float]:
        """Return its memory, by column."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        kibibytes = {"MiB": fields["VmHWM"], "own": fields["RssAnon"]}
        return {name: int(value.split()[0]) / 1024 for name, value in kibibytes.items()}


@contextmanager
def running(command: list[str], by_processor: bool) -> Iterator[Process]:
    """Run a command during the block."""
    began = time.perf_counter()
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=null, stdout=subprocess.PIPE, stderr=null)
    try:
        yield Process(process, by_processor, began)
    finally:
        process.kill()
        process.wait()


def of_command(column: str, command: list[str], by_processor: bool) -> dict[str, float]:
    """Measure a command that prints what it generates."""
    with running(command, by_processor) as one:
        assert one.process.stdout is not None
        if not os.read(one.process.stdout.fileno(), 1):
            raise SystemExit(f"{command!r} printed nothing.")
        return {column: one.seconds(), **one.mebibytes()}


def of_server(command: list[str], by_processor: bool) -> dict[str, float]:
    """Measure two starts of a server: until /health and a chat, and until /health and a text."""
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": MESSAGE}]}),
        "text": ("/v1/completions", {"prompt": PROMPT}),
    }
    figures: dict[str, float] = {}
    for column, (path, fields) in requests.items():
        with serving(command, by_processor) as (one, port):
            figures["/health"] = min(one.seconds(), figures.get("/health", float("inf")))
            first_token(port, path, fields)
            figures[column] = one.seconds()
            if column == "text":
                later = []
                for text in LATER:
                    before = one.seconds()
                    first_token(port, path, {"prompt": text})
                    later.append(one.seconds() - before)
                figures |= {"later": min(later)} | one.mebibytes()
    return figures


@contextmanager
def serving(command: list[str], by_processor: bool) -> Iterator[tuple[Process, int]]:
    """Start a server at a free port, and wait until it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running([*command, "--port", str(port)], by_processor) as server:
        while not answers(port):
            if server.process.poll() is not None:
                raise SystemExit(f"{command!r} does not start.")
            time.sleep(0.005)
        yield server, port


def answers(port: int) -> bool:
    """Return whether a server is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def first_token(port: int, path: str, fields: dict[str, Any]) -> None:
    """Send a request, and return when the first text arrives."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {**fields, "max_tokens": N_TOKENS, "temperature": 0, "stream": True}
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    while line := answer.readline():
        if b'"text":"' in line or b'"content":"' in line:
            connection.close()
            return
    raise SystemExit(f"{path} gave no text.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--llama-server", help="path of llama.cpp's llama-server")
    parser.add_argument("-t", type=int, default=1, help="threads (1)")
    parser.add_argument("--turns", type=int, default=5, help="(5)")
    arguments = parser.parse_args()
    by_processor = arguments.t == 1
    scripts = Path(sys.executable).parent
    common = ["-m", arguments.model, "-t", str(arguments.t)]
    text = [*common, "-p", PROMPT, "-n", str(N_TOKENS), "-no-cnv"]
    chat = [*common, "-p", MESSAGE, "-n", str(N_TOKENS)]
    serve = [str(scripts / "specllama"), "serve", *common]
    programs: dict[str, Callable[[], dict[str, float]]] = {
        "spec-cli, the executable": lambda: of_command(
            "text", [str(executable()), *text], by_processor
        ),
        "spec-cli": lambda: of_command("text", [str(scripts / "spec-cli"), *text], by_processor),
        "specllama chat": lambda: of_command(
            "chat", [str(scripts / "specllama"), "chat", *chat], by_processor
        ),
        "specllama serve": lambda: of_server(serve, by_processor),
        "specllama serve -np 1": lambda: of_server([*serve, "-np", "1"], by_processor),
    }
    if arguments.llama_server is not None:
        theirs = [arguments.llama_server, *common, "--no-ui"]
        programs |= {
            "llama-server": lambda: of_server(theirs, by_processor),
            "llama-server -np 1 -c 8192": lambda: of_server(
                [*theirs, "-np", "1", "-c", "8192"], by_processor
            ),
        }
    best: dict[str, dict[str, float]] = {name: {} for name in programs}
    for _ in range(arguments.turns):
        for name, measure in programs.items():
            for column, figure in measure().items():
                best[name][column] = min(figure, best[name].get(column, float("inf")))
    print(f"{'':27}", *(f"{column:>8}" for column in COLUMNS))
    for name, figures in best.items():
        cells = (
            "" if (one := figures.get(column)) is None else f"{one:.{2 if one < 20 else 0}f}"
            for column in COLUMNS
        )
        print(f"{name:27}", *(f"{cell:>8}" for cell in cells))


if __name__ == "__main__":
    main()
