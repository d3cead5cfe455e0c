"""Edits: functions rewritten with a change, and lines filled in.

    python benchmarks/bench_edits.py MODEL.gguf llama.cpp/bin/llama-server [-t THREADS]
        [-n EDITS]

The functions are from the workload `edit`. Both servers rewrite them as chats: ours with the old
function as `prediction`, llama-server plainly and with each of three kinds of drafts. All servers
run and take turns for every edit, in changing order. The time of a server is the wall-clock time of
all its answers, prompts included. Our session fills in lines with and without drafts: the last
changed line, between the new text before it and the old text after it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import openai
from bench_agent import client, specllama
from specllama import SpecSession
from specllama.bench.llama_server import model_flags, serving
from specllama.workloads import Replay, load

N_CTX = 4096
KINDS = {
    "plain": [],
    "ngram-simple 16": ["--spec-type", "ngram-simple", "--spec-ngram-simple-size-m", "16"],
    "ngram-map-k 16": ["--spec-type", "ngram-map-k", "--spec-ngram-map-k-size-m", "16"],
    "ngram-mod 16": ["--spec-type", "ngram-mod", "--spec-ngram-mod-n-min", "0",
                     "--spec-ngram-mod-n-max", "16"],
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line to fill in."""

    prefix: str
    suffix: str


@dataclass
class Writer:
    """A server that rewrites functions, and its time.

    Attributes:
        predicts: Whether it gets the old function as `prediction`.
        seconds: Wall-clock time.
        n_tokens: Tokens of its answers.
    """

    name: str
    speaker: openai.OpenAI
    predicts: bool = False
    seconds: float = 0.0
    n_tokens: int = 0

    def write(self, edit: Replay) -> None:
        prediction: dict[str, object] = {"type": "content", "content": _old(edit)}
        message = {"role": "user", "content": edit.prompt.removesuffix("```python\n")}
        began = time.perf_counter()
        answer = self.speaker.chat.completions.create(
            model="m",
            messages=[message],  # type: ignore[list-item]
            temperature=0,
            max_tokens=600,
            prediction=prediction if self.predicts else openai.omit,  # type: ignore[arg-type]
        )
        self.seconds += time.perf_counter() - began
        self.n_tokens += answer.usage.completion_tokens if answer.usage else 0


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Edits and lines, in turns.")
    parser.add_argument("model", help="GGUF file of a model that chats and fills in")
    parser.add_argument("llama_server", type=Path, help="llama.cpp's program")
    parser.add_argument("-t", "--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("-n", type=int, default=6, help="edits (6)")
    given = parser.parse_args(argv)
    edits = load("edit")
    edits = edits[:: max(1, len(edits) // given.n)][: given.n]
    _fill_in(given.model, given.threads, edits)
    with ExitStack() as up:
        ours = up.enter_context(specllama(given.model, given.threads, N_CTX))
        writers = [Writer("specllama, prediction", client(ours), predicts=True)]
        flags = model_flags(given.model, n_threads=given.threads, n_ctx=N_CTX, kv_type="f16")
        for kind, more in KINDS.items():
            server = up.enter_context(
                serving(given.llama_server, [*flags, "--jinja", *more], n_slots=1)
            )
            writers.append(Writer(f"llama-server {kind}", client(server.address)))
        for i, edit in enumerate(edits):
            first = i % len(writers)
            for writer in writers[first:] + writers[:first]:
                writer.write(edit)
    for writer in writers:
        print(f"{writer.name}: {writer.seconds:.1f} s, {writer.n_tokens} tokens")


def _fill_in(model: str, n_threads: int, edits: Sequence[Replay]) -> None:
    lines = [line for edit in edits for line in _lines(edit)]
    options = {"n_ctx": N_CTX, "n_threads": n_threads, "exact": False}
    for name, draft in (("plain", None), ("drafts", "auto")):
        total = generating = 0.0
        texts = []
        with SpecSession(model, draft, **options) as session:
            for line in lines:
                answer = session.infill(line.prefix, line.suffix, stop="\n", max_tokens=60)
                total += answer.stats.seconds.total
                generating += answer.stats.seconds.total - answer.stats.seconds.prefill
                texts.append(answer.text)
        n = len(lines)
        print(f"{n} lines filled in, {name}: {total / n:.2f} s a line, "
              f"{generating / n:.2f} s of it after the prompt", flush=True)  # fmt: skip


def _lines(edit: Replay) -> Iterator[Line]:
    """Yield the last changed line, if there is one."""
    old, new = _old(edit).splitlines(True), edit.reference.splitlines(True)
    changes = [one for one in SequenceMatcher(None, old, new).get_opcodes() if one[0] == "replace"]
    if changes:
        _, _, end_old, begin_new, end_new = changes[-1]
        before = "".join(new[: end_new - 1])
        indent = new[end_new - 1][: len(new[end_new - 1]) - len(new[end_new - 1].lstrip())]
        assert end_new > begin_new
        yield Line(before + indent, "\n" + "".join(old[end_old:]))


def _old(edit: Replay) -> str:
    """Return the old function."""
    return edit.prompt.split("```python\n")[1].split("```")[0]


if __name__ == "__main__":
    main()
