"""An agent's loop with specllama's server and llama-server, in turns:

    python benchmarks/bench_agent.py MODEL.gguf llama.cpp/bin/llama-server [-t THREADS]
        [--flash-attn off] [--flags="--spec-type ngram-map-k"] [--minutes N]
        [--titles [--cache-ram 0]]

The loop has thirty turns: a request, a call of one of five tools on a small repository, and its
result. Both servers run and get each request one after the other; the order changes every turn.
Both see the same conversation: that of llama-server if it calls a tool, else ours. So a different
call does not change all later turns. The time of a turn is the wall-clock time of its requests,
without that of the tools. The first turn is given. A call written as JSON in the text counts as a
call, too: small models leave out the tags, and llama-server treats this as text.

With --titles both are also asked for a title before each request, as agents ask for titles and
summaries. This is a separate request in the only slot, so the conversation is evicted meanwhile.
With --cache-ram 0 our server cannot keep it in main memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
from agent import ORDERS, TOOLS, Repository
from specllama.bench.llama_server import model_flags, serving

N_CTX = 16384
MOST_TOKENS = 900
TITLE_TOKENS = 12
CACHE_RAM = 8192
"""In MiB, the default of both servers."""


@dataclass
class Server:
    """One of the two servers.

    Attributes:
        client: Its client.
        seconds: Seconds of each turn.
        titles: Seconds of each title.
        n_tokens: Tokens that it generated.
    """

    client: openai.OpenAI
    seconds: list[float] = field(default_factory=list)
    titles: list[float] = field(default_factory=list)
    n_tokens: int = 0

    def ask(self, messages: Sequence[Any]) -> Any:
        """Return the answer to a conversation."""
        began = time.perf_counter()
        answer = self.client.chat.completions.create(
            model="m",
            messages=list(messages),
            tools=TOOLS,
            parallel_tool_calls=False,
            temperature=0,
            max_tokens=MOST_TOKENS,
        )
        self.seconds.append(time.perf_counter() - began)
        self.n_tokens += answer.usage.completion_tokens
        return answer.choices[0].message

    def ask_title(self, order: str) -> None:
        """Ask for a title of a request, outside of the conversation."""
        began = time.perf_counter()
        self.client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": "You write titles of at most five words."},
                {"role": "user", "content": order},
            ],
            temperature=0,
            max_tokens=TITLE_TOKENS,
        )
        self.titles.append(time.perf_counter() - began)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="An agent's loop against two servers.")
    parser.add_argument("model", help="GGUF file with a chat template")
    parser.add_argument("llama_server", type=Path, help="llama.cpp's program")
    parser.add_argument("-t", "--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("--turns", type=int, default=len(ORDERS), help="turns (all)")
    parser.add_argument("--titles", action="store_true", help="ask for titles, too")
    parser.add_argument(
        "--cache-ram", type=int, default=CACHE_RAM, help="of ours, MiB (its default, 8192)"
    )
    parser.add_argument("--minutes", type=float, default=60, help="no turn begins later (60)")
    parser.add_argument("--flash-attn", default="auto", help="of both servers (auto)")
    parser.add_argument("--flags", default="", help="more flags of llama-server (none)")
    given = parser.parse_args(argv)
    flags = model_flags(given.model, n_threads=given.threads, n_ctx=N_CTX, kv_type="f16")
    flags += ["--jinja", "-fa", given.flash_attn]
    with (
        serving(
            given.llama_server, [*flags, *given.flags.split()], n_slots=1, cache_ram=CACHE_RAM
        ) as theirs,
        specllama(
            given.model,
            given.threads,
            N_CTX,
            "-fa",
            given.flash_attn,
            "-cram",
            str(given.cache_ram),
        ) as ours,
        tempfile.TemporaryDirectory() as folder,
    ):
        servers = [Server(client(theirs.address)), Server(client(ours))]
        until = time.monotonic() + 60 * given.minutes
        same = _converse(
            servers, Repository(Path(folder)), ORDERS[: given.turns], until, titles=given.titles
        )
    _report(servers, same)


def _converse(
    servers: list[Server],
    repository: Repository,
    orders: Sequence[str],
    until: float,
    *,
    titles: bool,
) -> list[bool]:
    """Run the loop; return for each turn whether both answers were the same."""
    system = "You work on a Python repository. Use one tool for each request."
    messages: list[Any] = [{"role": "system", "content": system}, *_given(repository)]
    same: list[bool] = []
    n_calls = 0
    for turn, order in enumerate(orders):
        if time.monotonic() > until:
            break
        messages.append({"role": "user", "content": order})
        answers: dict[int, Any] = {}
        for i in (turn % 2, 1 - turn % 2):
            if titles:
                servers[i].ask_title(order)
            answers[i] = servers[i].ask(messages)
        same.append(_said(answers[0]) == _said(answers[1]))
        seconds = " ".join(f"{server.seconds[-1]:.2f}" for server in servers)
        print(
            f"{turn + 1} {order[:60]!r} {seconds} {'same' if same[-1] else 'not the same'}",
            flush=True,
        )
        if not same[-1]:
            print(f"  theirs {_said(answers[0])!r:.300}\n  ours   {_said(answers[1])!r:.300}")
        answer = answers[1] if _call(answers[1]) and not _call(answers[0]) else answers[0]
        messages.append(answer.to_dict())
        if call := _call(answer):  # the model sees the result when it is asked the next thing
            n_calls += 1
            call_id = answer.tool_calls[0].id if answer.tool_calls else f"call_{turn + 1}"
            messages.append(_result(call_id, repository.call(*call)))
    print(f"calls: {n_calls}")
    return same


def _given(repository: Repository) -> list[Any]:
    """Return a turn that shows the format of calls."""
    call = {
        "id": "call_0",
        "type": "function",
        "function": {"name": "list_files", "arguments": "{}"},
    }
    return [
        {"role": "user", "content": "Which files are there?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        _result("call_0", repository.call("list_files", {})),
    ]


def _result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _call(message: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the arguments of a call; None if there is none. The call may also be in
    the text, because small models leave out the tags, or write a fence instead."""
    if message.tool_calls:
        function = message.tool_calls[0].function
        try:
            return function.name, json.loads(function.arguments)
        except ValueError:  # cut off by MOST_TOKENS
            return None
    text = message.content or ""
    try:
        call, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except ValueError:
        return None
    name, arguments = call.get("name"), call.get("arguments")
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def _said(message: Any) -> Any:
    return _call(message) or message.content


def _report(servers: Sequence[Server], same: Sequence[bool]) -> None:
    theirs, ours = servers
    pairs = list(zip(theirs.seconds, ours.seconds, strict=True))
    print(f"same answers: {sum(same)} of {len(same)}")
    for name, server in (("llama-server", theirs), ("specllama", ours)):
        titles = f", titles {sum(server.titles):.1f} s" if server.titles else ""
        print(f"{name}: {sum(server.seconds):.1f} s{titles}, {server.n_tokens} tokens")
    _compare("all turns", pairs)
    # After a different answer, one of the two must decode the other's answer.
    fair = [pair for i, pair in enumerate(pairs) if all(same[max(i - 1, 0) : i + 1])]
    _compare("turns with the same answers, but for those behind another", fair)
    print(f"median turn: {statistics.median(mine / other for other, mine in pairs):.2f}")


def _compare(which: str, pairs: Sequence[tuple[float, float]]) -> None:
    theirs, ours = (sum(pair[i] for pair in pairs) for i in (0, 1))
    ratio = f", {ours / theirs:.2f} of it" if pairs else ""
    print(f"{len(pairs)} {which}: {theirs:.1f} s and {ours:.1f} s{ratio}")


def client(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=600)


@contextmanager
def specllama(model: str, n_threads: int, n_ctx: int, *flags: str) -> Iterator[str]:
    """Start our server; yield its address."""
    command = [sys.executable, "-m", "specllama", "serve", "-m", model, "-c", str(n_ctx)]
    command += ["-t", str(n_threads), "-np", "1", "--port", "0", "--exact", "off", *flags]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if "http://" in line:
                yield line.split()[-1]
                return
        raise SystemExit("specllama serve does not start.")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
