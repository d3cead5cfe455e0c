"""A target on a server and drafts made here: tokens per second, by round-trip time.

    python benchmarks/bench_remote.py [-m TARGET.gguf] [-md DRAFT.gguf] [-n TOKENS]
        [--trips MS,MS,...] [--kinds NAME,NAME,...] [--texts N] [--ways "NAME;NAME;..."]
        [--repeat N] [--process-time] [--rounds] [--plot FILE]

The server is a separate process with one thread, and the client drafts with one thread. A link of
`support/slow_link.py` between them adds half a round trip in each direction. A row is a way to get
the text:

    plain               in lockstep without drafts: one round trip per token
    lockstep, n-grams   the same with n-gram drafts, as long as the planner finds best
    lockstep, model     the same with the draft model and n-grams
    stream, plain       the server's answer as a stream, without speculation
    stream              the same with the server's default: n-gram drafts on the server

Texts are answers to the benchmark's questions, or `edit`: a file of three functions is written
again with a change in one. The drafters here get the file as `reference`. (The stream has it in its
prompt only.)

All texts are first written once without a delay, so that both sides have learned their costs. Then,
for each round-trip time, a text is generated with few tokens, so that its prompt is cached, and
then measured from its first token to its last: greedily, N tokens at most, over all texts. The ways
take turns; the median over turns counts. With the defaults and a target that decodes 20 tokens per
second this takes about five minutes.

With --process-time the clock is replaced by the processor time of both processes plus the round
trips. Use it on a machine that others use, too. (The planner still uses the clock, so where decodes
wait for the processor, it takes round trips to be shorter than they are.)
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import httpx
from specllama import SpecSession
from specllama.bench import workload
from specllama.model.chat_template import Message
from specllama.server.app import App
from specllama.server.http.graceful import GracefulServer
from specllama.server.settings import Settings
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.workloads import Replay, load

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from slow_link import SlowLink, slow_link

N_CTX = 2048
WARM = 4
"""Tokens of the generation before the measured one."""
Rates = dict[str, dict[float, float]]
"""Tokens per second: [way][round trip in milliseconds]."""


class Clock:
    """Tokens and seconds between the first token of a text and its last.

    Attributes:
        n_tokens: Tokens of all texts, without the first token of each.
        seconds: Time of all texts.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.n_tokens = 0
        self.seconds = 0.0
        self._now = now

    def run(self, n_at_once: Iterator[int]) -> None:
        """Measure a text. `n_at_once` yields how many tokens arrive each time."""
        next(n_at_once)
        began = last = self._now()
        for n in n_at_once:
            last = self._now()
            self.n_tokens += n
        self.seconds += last - began


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A target on a server and drafts made here.")
    parser.add_argument("-m", "--model", default=str(BUNDLED_MODEL), help="target (bundled)")
    parser.add_argument("-md", "--draft-model", help="draft model (the bundled target's)")
    parser.add_argument("-n", type=int, default=64, help="tokens of a text at most (64)")
    parser.add_argument("--trips", default="0,40,100,200", help="round trips in ms")
    parser.add_argument("--kinds", help="workloads (fix,rename; copy,prose without template)")
    parser.add_argument("--texts", type=int, default=1, help="texts of each kind (1)")
    parser.add_argument("--ways", help="rows, see above, separated by semicolons (all)")
    parser.add_argument("--repeat", type=int, default=1, help="turns (1)")
    parser.add_argument("--process-time", action="store_true", help="for a busy machine, see above")
    parser.add_argument("--rounds", action="store_true", help="print (drafted, accepted) of rounds")
    parser.add_argument("--plot", type=Path, help="file for a plot, .svg or .png")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        _serve(given.model)
        return
    if given.plot is not None:
        import matplotlib  # noqa: F401  # fail before anything is measured
    draft = given.draft_model
    if draft is None and given.model == str(BUNDLED_MODEL):
        draft = str(BUNDLED_DRAFT)
    trips = [float(one) for one in given.trips.split(",")]
    texts = _texts(given.model, given.kinds, given.texts)
    with ExitStack() as stack:
        lines: dict[str, Line] = {}
        for speculation in ("ngram", "plain"):
            ways = _ways(speculation, draft, given.rounds)
            if given.ways is not None:
                ways = {way: one for way, one in ways.items() if way in given.ways.split(";")}
            if not ways:
                continue
            url, pid = stack.enter_context(_server(given.model, speculation))
            for way, open_way in ways.items():
                link = stack.enter_context(slow_link(url))
                write = stack.enter_context(open_way(link.url))
                clock = partial(_process_time, pid, link) if given.process_time else perf_counter
                lines[way] = Line(link, write, clock)
        rates = _rates(lines, texts, given.n, trips, given.repeat)
    _print(rates, trips)
    if given.plot is not None:
        _plot(rates, given.plot)


@dataclass(frozen=True)
class Text:
    """A text to generate.

    Attributes:
        prompt: Token ids.
        reference: A text that it may copy from.
    """

    prompt: list[int]
    reference: str = ""


Write = Callable[[Text, int], Iterator[int]]
"""Generates so many tokens of a text; yields how many arrive each time."""
OpenWay = Callable[[str], AbstractContextManager[Write]]


@dataclass(frozen=True)
class Line:
    """A way to get texts, and its link.

    Attributes:
        link: The link to the server.
        write: Generates a text.
        now: A clock, in seconds.
    """

    link: SlowLink
    write: Write
    now: Callable[[], float]


def _process_time(server: int, link: SlowLink) -> float:
    """Return the processor seconds of this process and the server, plus the round trips. In
    lockstep these follow one another. A stream has no round trips between its first token and its
    last."""
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    there = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return process_time() + there + 2 * link.delay * link.n_trips


def _rates(
    lines: dict[str, Line],
    texts: Sequence[Text],
    n: int,
    trips: Sequence[float],
    repeat: int,
) -> Rates:
    """Return the median of each way and round trip, over turns in which the ways alternate."""
    for line in lines.values():
        _rate(line, texts, n)
    seen: dict[str, dict[float, list[float]]] = {way: {trip: [] for trip in trips} for way in lines}
    for turn in range(repeat):
        for trip in trips:
            for way in list(lines)[:: -1 if turn % 2 else 1]:
                lines[way].link.delay = trip / 2000
                seen[way][trip].append(_rate(lines[way], texts, n))
                print(f"{trip:g} ms, {way}: {seen[way][trip][-1]:.2f}", file=sys.stderr)
    return {
        way: {trip: statistics.median(found) for trip, found in by_trip.items()}
        for way, by_trip in seen.items()
    }


def _rate(line: Line, texts: Sequence[Text], n: int) -> float:
    clock = Clock(line.now)
    for text in texts:
        deque(line.write(text, WARM), maxlen=0)
        clock.run(line.write(text, n))
    return clock.n_tokens / clock.seconds


def _ways(speculation: str, draft: str | None, rounds: bool) -> dict[str, OpenWay]:
    """Return the ways to get a text from a server of this kind.

    rounds: Print how many tokens each round of a text drafted and accepted.
    """
    if speculation == "plain":
        return {"stream, plain": _streamed}
    ways = {"plain": _drafted(None, rounds), "lockstep, n-grams": _drafted("ngram", rounds)}
    if draft is not None:
        ways["lockstep, model"] = _drafted(draft, rounds)
    return ways | {"stream": _streamed}


def _drafted(draft: str | None, rounds: bool) -> OpenWay:
    @contextmanager
    def opened(url: str) -> Iterator[Write]:
        with SpecSession(target=url, draft=draft, n_threads=1) as session:

            def write(text: Text, n: int) -> Iterator[int]:
                with session.stream(text.prompt, max_tokens=n, reference=text.reference) as stream:
                    for chunk in stream:
                        yield int(chunk.token is not None)
                    if rounds:
                        print(stream.result().stats.by_round, file=sys.stderr)

            yield write

    return opened


@contextmanager
def _streamed(url: str) -> Iterator[Write]:
    with httpx.Client(base_url=url, timeout=600) as client:

        def write(text: Text, n: int) -> Iterator[int]:
            body = {"model": "m", "prompt": text.prompt, "max_tokens": n, "temperature": 0}
            body |= {"stream": True, "logprobs": 0}
            with client.stream("POST", "/v1/completions", json=body) as answer:
                yield from _tokens(answer)

        yield write


def _tokens(answer: httpx.Response) -> Iterator[int]:
    """Yield the number of tokens of each event of a stream."""
    for line in answer.iter_lines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                logprobs = choice.get("logprobs")
                yield 0 if logprobs is None else len(logprobs["tokens"])


def _texts(model: str, kinds: str | None, n_texts: int) -> list[Text]:
    """Return the texts of the chosen kinds, in the model's chat template if it has one."""
    with SpecSession(model, None, n_ctx=64, n_gpu_layers=0, n_threads=1) as session:
        kinds = kinds or ("fix,rename" if session.has_chat_template else "copy,prose")
        texts = []
        if "edit" in kinds.split(","):
            edits = load("edit")
            texts += [_edit(edits[3 * i : 3 * i + 3], session) for i in range(n_texts)]
            kinds = ",".join(kind for kind in kinds.split(",") if kind != "edit")
        if kinds:
            chosen = workload.for_model(workload.choose(kinds, None, n_texts), session, n_texts)
            texts += [Text(task.prompt_tokens(session)) for one in chosen for task in one.tasks]
        return texts


def _edit(edits: Sequence[Replay], session: SpecSession) -> Text:
    """Return the task to write a file of these functions again with the middle one changed."""
    file = "\n\n".join(edit.prompt.split("```python\n")[1].split("```")[0] for edit in edits)
    change = edits[len(edits) // 2].prompt.split("\n")[0]
    asked = f"```python\n{file}```\n\n{change} Write the whole file again, unchanged otherwise."
    message: Message = {"role": "user", "content": asked}
    return Text(session.render_chat([message]), f"```python\n{file}```")


@contextmanager
def _server(model: str, speculation: str) -> Iterator[tuple[str, int]]:
    """Run a server in a new process; yield its URL and process id."""
    command = [sys.executable, "-m", "specllama", "serve", "--port", "0", "-t", "1", "-np", "1"]
    command += ["-m", model, "-c", str(N_CTX), "-ngl", "0"]
    if speculation == "plain":  # `specllama serve` always speculates
        command = [sys.executable, __file__, "--serve", "-m", model]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split()[-1], server.pid
        finally:
            server.terminate()


def _serve(model: str) -> None:
    """Run a server that does not speculate; `specllama serve` cannot do this."""
    options: dict[str, Any] = {"n_ctx": N_CTX, "n_threads": 1, "n_gpu_layers": 0}
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        SpecSession(model, None, **options) as session,
    ):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        print(f"Serving at {url}", file=sys.stderr, flush=True)
        GracefulServer(App(session, Settings(name="plain")), seconds=0).serve_at([listening])


def _print(rates: Rates, trips: Sequence[float]) -> None:
    print(f"{'tokens/s, by trip in ms':24}" + "".join(f"{trip:8g}" for trip in trips))
    for way, by_trip in rates.items():
        print(f"{way:24}" + "".join(f"{by_trip[trip]:8.2f}" for trip in trips))


def _plot(rates: Rates, path: Path) -> None:
    """Draw the rates by round trip, in the style of docs/plots."""
    import matplotlib

    matplotlib.use("svg" if path.suffix == ".svg" else "agg")
    matplotlib.rcParams |= {"svg.hashsalt": "specllama", "font.size": 9, "axes.spines.top": False,
                            "axes.spines.right": False, "figure.figsize": (6.4, 3.6)}  # fmt: skip
    from matplotlib import pyplot as plt

    for way, by_trip in rates.items():
        style = {"plain": ":", "stream, plain": ":", "stream": "--"}.get(way, "-")
        plt.plot([*by_trip], [*by_trip.values()], style, marker=".", label=way)
    plt.ylim(bottom=0)
    plt.xlabel("there and back, ms")
    plt.ylabel("tokens/s")
    plt.legend(frameon=False, fontsize=8)
    plt.tight_layout()
    plt.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close()


if __name__ == "__main__":
    main()
