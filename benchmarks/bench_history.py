"""The gain of a memory of earlier requests with a real model, compared with llama-server's
ngram-mod:

    python benchmarks/bench_history.py MODEL.gguf [llama.cpp/bin/llama-server]
        [--tasks agent,extract,rephrase,subjects] [-t 1] [--repeats 1] [--most 160] [--kv-type q8_0]

It sends series of requests to `specllama serve` without and with its memory, and to llama-server,
plain and with --spec-type ngram-mod, whose table all slots share:

    agent       twenty turns about a small repository, in two conversations
    extract     24 letters, from which the same fields are extracted as JSON, with a schema
    rephrase    six questions, each in four wordings
    subjects    24 conversations about six subjects that have little in common

All servers run at the same time and get the same requests one after the other, in changing order.
Conversations continue with the answers of the first server. Every repeat begins with fresh servers.
A line is a server, for the whole series and for each of its parts: generated tokens, decodes of the
model for them, tokens per decode; CPU seconds of its process, prompts included (medians of the
repeats), and their ratio to the line `specllama` (median of the ratios). It also reports how many
answers differ from those of the first server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from history_tasks import TASKS
from specllama.bench.llama_server import model_flags

N_CTX = 8192
_SECONDS_TO_START = 300
_ORDER = ("specllama", "with memory", "llama-server", "ngram-mod").index


@dataclass
class Tally:
    """The figures of a server for a series, or for a part of it.

    Attributes:
        n_tokens: Tokens generated.
        n_rounds: Decodes of the model for them.
        seconds: Seconds of CPU time.
        n_different: Answers that differ from the first server's.
    """

    n_tokens: int = 0
    n_rounds: int = 0
    seconds: float = 0.0
    n_different: int = 0

    def add(self, other: Tally) -> None:
        """Add the figures of a request."""
        self.n_tokens += other.n_tokens
        self.n_rounds += other.n_rounds
        self.seconds += other.seconds
        self.n_different += other.n_different


@dataclass
class Server:
    """A running server.

    Attributes:
        name: Its name in the table.
        pid: Its process id.
        url: Its address.
    """

    name: str
    pid: int
    url: str

    def ask(
        self, messages: Sequence[dict[str, str]], fields: dict[str, Any], most: int
    ) -> tuple[str, Tally]:
        """Return its answer and the figures of the request."""
        body = {"model": "m", "messages": messages, "temperature": 0, "max_tokens": most, **fields}
        began = self._processor_seconds()
        answer = httpx.post(f"{self.url}/v1/chat/completions", json=body, timeout=3600).json()
        seconds = self._processor_seconds() - began
        if "choices" not in answer:
            raise SystemExit(f"{self.name}: {answer}")
        timings = answer["timings"]
        n_accepted = timings.get("draft_n_accepted", 0)
        # Our server also has forced tokens of a grammar, which take no decode.
        n_rounds = timings.get("predicted_rounds_n", timings["predicted_n"] - n_accepted)
        text: str = answer["choices"][0]["message"]["content"]
        return text, Tally(timings["predicted_n"], n_rounds, seconds)

    def _processor_seconds(self) -> float:
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def commands(model: str, program: Path | None, threads: int, kv_type: str) -> dict[str, list[str]]:
    """Return the servers' commands, without ports, by name."""
    ours = [sys.executable, "-m", "specllama", "serve", "-m", model, "-c", str(N_CTX)]
    ours += ["-t", str(threads), "-np", "1", "-kv", kv_type, "-fa", "on", "--exact", "off"]
    found = {
        "specllama": [*ours, "--memory", "0"],
        "with memory": [*ours, "--memory", "64"],
    }
    if program is not None:
        flags = model_flags(model, n_threads=threads, n_ctx=N_CTX, kv_type=kv_type)
        theirs = [str(program), *flags, "-np", "1", "--no-ui", "--jinja", "-fa", "on"]
        found |= {
            "llama-server": theirs,
            "ngram-mod": [*theirs, "--spec-type", "ngram-mod", "--spec-ngram-mod-n-min", "0"],
        }
    return found


@contextmanager
def started(name: str, command: Sequence[str], port: int) -> Iterator[Server]:
    process = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < until and process.poll() is None:
            try:
                if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        else:
            raise SystemExit(f"{name} does not start: {' '.join(command)}")
        yield Server(name, process.pid, url)
    finally:
        process.terminate()
        process.wait()


def tallies(arguments: argparse.Namespace, task: str) -> dict[tuple[str, str], Tally]:
    """Run a series once, with fresh servers. Return the figures by part and server; part "all" is
    the whole series."""
    all_commands = commands(
        arguments.model, arguments.llama_server, arguments.threads, arguments.kv_type
    )
    found: dict[tuple[str, str], Tally] = defaultdict(Tally)
    with ExitStack() as running:
        servers = [
            running.enter_context(started(name, command, arguments.port + i))
            for i, (name, command) in enumerate(all_commands.items())
        ]
        n_asked = 0

        def ask(messages: list[dict[str, str]], fields: dict[str, Any], part: str) -> str:
            nonlocal n_asked
            first = n_asked % len(servers)
            n_asked += 1
            answers = {
                server.name: server.ask(messages, fields, arguments.most)
                for server in (*servers[first:], *servers[:first])
            }
            expected, _ = answers[servers[0].name]
            for name, (text, tally) in answers.items():
                tally.n_different = text != expected
                found["all", name].add(tally)
                found[part, name].add(tally)
            return expected

        TASKS[task](ask)
    return found


def show(task: str, part: str, found: dict[str, list[Tally]]) -> None:
    print(f"\n{task + ', ' + part:20}{'tokens':>8}{'decodes':>9}{'per decode':>12}", end="")
    print(f"{'seconds':>9}{'ratio':>7}")
    plain = [one.seconds for one in found["specllama"]]
    for name, all_of in found.items():
        seconds = statistics.median(one.seconds for one in all_of)
        ratio = statistics.median(
            one.seconds / other for one, other in zip(all_of, plain, strict=True)
        )
        n_tokens = statistics.median(one.n_tokens for one in all_of)
        n_rounds = statistics.median(one.n_rounds for one in all_of)
        n_different = statistics.median(one.n_different for one in all_of)
        print(
            f"{name:20}{n_tokens:>8.0f}{n_rounds:>9.0f}{n_tokens / n_rounds:>12.2f}"
            f"{seconds:>9.1f}{ratio:>7.2f}"
            f"{f'  {n_different:.0f} answers differ' if n_different else ''}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("llama_server", type=Path, nargs="?")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--most", type=int, default=160, help="tokens of an answer (160)")
    parser.add_argument("--kv-type", default="q8_0")
    parser.add_argument("--port", type=int, default=18300, help="first server's port (18300)")
    arguments = parser.parse_args()
    for task in arguments.tasks.split(","):
        found: dict[str, dict[str, list[Tally]]] = {}
        for _ in range(arguments.repeats):
            for (part, name), one in tallies(arguments, task).items():
                found.setdefault(part, {}).setdefault(name, []).append(one)
        for part, by_server in found.items():
            show(task, part, {name: by_server[name] for name in sorted(by_server, key=_ORDER)})


if __name__ == "__main__":
    main()
