"""Heads and block drafters compared with draft models: acceptance and speed.

    python benchmarks/bench_heads.py acceptance models/draft-q8_0.gguf head.gguf
    python benchmarks/bench_heads.py speed models/draft-q8_0.gguf head.gguf \\
        [--model MODEL.gguf] [--padded] [--llama-cpp DIRECTORY]
    python benchmarks/bench_heads.py mtp [--llama-cpp DIRECTORY]

Prompts: pieces of the files held out from the training of the bundled pair, also for a --model that
is a --padded copy of the bundled one (models/pad.py); for another --model, conversations of the
held-out half of the answered workloads.

acceptance: the acceptance rate at each position in a draft of --length tokens, if the tokens before
it are accepted, and tokens per round; with `--guesses 3`, only tokens per round, with trees.

speed: in turns, the median ratio to our plain decoding over the prompts, by wall-clock time and by
CPU time (for a busy machine; prompts included), and the share of drafted tokens that was accepted;
with --llama-cpp (bench_peers.py describes how to build it), also llama-server with the same files,
greedy, with drafts of two to five tokens.

mtp: the same as `speed`, greedy, with two small files whose multi-token prediction layer is always
right.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from heads import depend_on_last_token, glm_model, write_glm, write_qwen
from random_model import EOS, delta_net_model
from specllama import SpecSession, _core
from specllama.bench.llama_server import LlamaServer, model_flags, serving
from specllama.measure.places import by_place
from specllama.session import BUNDLED_MODEL
from specllama.workloads import ANSWERED, load_answered

# The held-out files, as in models/README.md.
HELD_OUT = (
    "contextlib", "csv", "getpass", "lzma", "multiprocessing/synchronize", "poplib", "shutil",
    "struct", "tracemalloc", "xml/dom/xmlbuilder",
)  # fmt: skip
N_PROMPT, N_PREDICT = 96, 128  # within the 256 tokens of training windows
LENGTH = 5
N_LAYERS = 24  # of the files for `mtp`
RULES = (
    (0.0, "coupled"), (0.7, "coupled"), (0.7, "rejection"), (1.0, "coupled"), (1.0, "rejection"),
)  # fmt: skip
SESSION: dict[str, Any] = {"n_threads": 1, "n_gpu_layers": 0}

Prompts = list[list[int]]


class Target(NamedTuple):
    """A model, its prompts, and options of its sessions."""

    model: Path
    prompts: Prompts
    options: dict[str, Any]


def of_bundled(model: Path, per_file: int) -> Target:
    """Return pieces of every file: its first tokens, and others as far apart as possible.

    model: The bundled target, or a padded copy of it.
    """
    found = []
    with SpecSession(draft=None, **SESSION) as session:
        (begin,) = session.tokenize("")
        for name in HELD_OUT:
            path = Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py"
            tokens = session.tokenize(path.read_text(encoding="utf-8"), add_special=False)
            for i in range(per_file):
                first = (len(tokens) - N_PROMPT) * i // per_file
                found.append([begin, *tokens[max(first, 0) :][:N_PROMPT]])
    return Target(model, found, SESSION | {"n_ctx": 512})


def of_chat(model: Path, per_workload: int) -> Target:
    """Return conversations of each workload, rendered with the model's chat template."""
    with SpecSession(model, None, n_ctx=512, **SESSION) as session:
        found = [
            session.render_chat(one.messages)
            for name in ANSWERED
            for one in load_answered(name, "held-out")[:per_workload]
        ]
    return Target(model, found, SESSION | {"n_ctx": max(map(len, found)) + N_PREDICT})


class Accepted:
    """The acceptance of drafts over several generations."""

    def __init__(self) -> None:
        self.tokens = 0
        self.rounds: list[tuple[int, int]] = []

    def add(self, stats: _core.Stats) -> None:
        self.tokens += stats.generated_tokens
        self.rounds += stats.by_round


def acceptance(target: Target, drafts: list[Path], length: int, guesses: int) -> None:
    fixed: dict[str, Any] = {"cascade": False, "spec_length": length, "spec_tree": guesses}
    for draft in drafts:
        with SpecSession(target.model, draft, **fixed, **target.options) as session:
            for temperature, rule in RULES:
                chosen: Any = {"temperature": temperature, "acceptance": rule}
                found = Accepted()
                for seed, prompt in enumerate(target.prompts):
                    done = session.generate(prompt, seed=seed, max_tokens=N_PREDICT, **chosen)
                    found.add(done.stats)
                print(
                    f"{draft.stem:12} T = {temperature:<4} {rule:10}",
                    *(f"{share:.3f}" for share in by_place(found.rounds) if guesses == 1),
                    f"  {found.tokens / len(found.rounds):.2f} tokens per round",
                    flush=True,
                )


class Run(NamedTuple):
    """The result of a text: tokens per second, drafted and accepted tokens, and CPU time in
    seconds, which is unknown for another process."""

    speed: float
    drafted: int
    accepted: int
    processor: float = math.nan


Contestant = Callable[[list[int], int, float], Run]
"""Continues a prompt with a seed and a temperature."""


def of_session(session: SpecSession) -> Contestant:
    def run(prompt: list[int], seed: int, temperature: float) -> Run:
        chosen: Any = {"seed": seed, "temperature": temperature, "max_tokens": N_PREDICT}
        begin = time.process_time()
        stats = session.generate(prompt, **chosen).stats
        seconds = time.process_time() - begin
        return Run(stats.tokens_per_second, stats.drafted, stats.accepted, seconds)

    return run


def of_server(server: LlamaServer) -> Contestant:
    def run(prompt: list[int], seed: int, temperature: float) -> Run:
        answer = server.complete(prompt, N_PREDICT, cache_prompt=False)
        return Run(answer.n_timed / answer.seconds, answer.drafted, answer.accepted)

    return run


def of_files(drafts: list[Path]) -> dict[str, list[str]]:
    """Return the flags of llama-server for these files, by name of the setting."""
    kinds = {"eagle3": "draft-eagle3", "dflash": "draft-dspark"}
    settings: dict[str, list[str]] = {}
    for draft in drafts:
        kind = kinds.get(_core.read_model_file(str(draft)).architecture, "draft-simple")
        settings[kind] = ["--spec-type", kind, "-md", str(draft)]
    return settings


def speed(
    target: Target,
    sessions: dict[str, dict[str, Any]],
    servers: dict[str, list[str]],
    llama_cpp: Path | None,
    temperatures: tuple[float, ...],
) -> None:
    """Measure sessions with these options; and with --llama-cpp, llama-server with these flags."""
    with ExitStack() as stack:
        contestants: dict[str, Contestant] = {}
        for name, own in sessions.items():
            session = SpecSession(target.model, **(target.options | own))
            contestants[name] = of_session(stack.enter_context(session))
        if llama_cpp is not None:
            flags: dict[str, list[str]] = {"llama-server, plain": []}
            for (name, some), n in itertools.product(servers.items(), range(2, LENGTH + 1)):
                flags[f"llama-server, {name} {n}"] = [*some, "--spec-draft-n-max", str(n)]
            for name, some in flags.items():
                contestants[name] = of_server(stack.enter_context(start(llama_cpp, target, some)))
        for temperature in temperatures:
            some = (
                contestants if temperature == 0 else {name: contestants[name] for name in sessions}
            )
            compare(some, target.prompts, temperature)


def start(llama_cpp: Path, target: Target, flags: list[str]) -> AbstractContextManager[LlamaServer]:
    n_ctx = target.options["n_ctx"]
    common = model_flags(str(target.model), n_threads=1, n_ctx=n_ctx, kv_type="f16")
    all_flags = [*common, "-fa", "on", "-dev", "none", "-devd", "none", *flags]
    return serving(llama_cpp / "llama-server", all_flags, n_slots=1)


def compare(contestants: dict[str, Contestant], prompts: Prompts, temperature: float) -> None:
    runs: dict[str, list[Run]] = {name: [] for name in contestants}
    for seed, prompt in enumerate(prompts):
        for name in list(contestants) if seed % 2 else list(contestants)[::-1]:
            runs[name].append(contestants[name](prompt, seed, temperature))
    for name, some in runs.items():
        both = list(zip(some, runs["plain"], strict=True))
        ratios = [one.speed / plain.speed for one, plain in both]
        by_processor = [plain.processor / one.processor for one, plain in both]
        drafted, accepted = (sum(one[i] for one in some) for i in (1, 2))
        print(
            f"T = {temperature}  {name:28} {statistics.median(one.speed for one in some):7.0f} "
            f"tokens/s, {statistics.median(ratios):.2f} of plain, "
            f"{statistics.median(by_processor):.2f} by processor time"
            + (f", {accepted / drafted:.2f} of {drafted} drafted tokens" if drafted else ""),
            flush=True,
        )


def mtp(llama_cpp: Path | None) -> None:
    """Measure two files in which only the last token decides the next one."""
    sessions: dict[str, dict[str, Any]] = {"plain": {"draft": None}}
    for length in ("auto", *range(2, LENGTH + 1)):
        sessions[f"mtp {length}"] = {"draft": "mtp", "cascade": False, "spec_length": length}
    servers = {"draft-mtp": ["--spec-type", "draft-mtp"]}
    for name, model, write in (
        ("qwen35", delta_net_model(1, N_LAYERS), write_qwen),
        ("glm4moe", glm_model(N_LAYERS), write_glm),
    ):
        depend_on_last_token(model)
        model.tensors["output.weight"][EOS] = 0  # so that no text ends
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder) / "model.gguf", model, N_LAYERS)
            prompts = [[1, *range(3, 33), token] for token in range(3, 95, 5)]
            print(name, flush=True)
            target = Target(path, prompts, SESSION | {"n_ctx": 512})
            speed(target, sessions, servers, llama_cpp, (0.0,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("acceptance", "speed", "mtp"))
    parser.add_argument("drafts", type=Path, nargs="*", metavar="FILE.gguf")
    parser.add_argument("--model", type=Path, help="the target (the bundled one)")
    parser.add_argument(
        "--per-file", type=int, default=3, help="prompts of each file, or workload (3)"
    )
    parser.add_argument(
        "--padded", action="store_true", help="--model is a padded copy of the bundled one"
    )
    parser.add_argument("--length", type=int, default=5, help="tokens of a draft (5)")
    parser.add_argument("--guesses", type=int, default=1, help="at a position (1)")
    parser.add_argument("--spec-length", type=int, help="tokens per draft (the planner's choice)")
    parser.add_argument("--llama-cpp", type=Path, help="where llama-server is; for `speed`")
    arguments = parser.parse_args()
    if arguments.what == "mtp":
        mtp(arguments.llama_cpp)
        return
    if not arguments.drafts:
        parser.error(f"{arguments.what} needs the files of draft models or heads")
    if arguments.model is None or arguments.padded:
        target = of_bundled(arguments.model or BUNDLED_MODEL, arguments.per_file)
    else:
        target = of_chat(arguments.model, arguments.per_file)
    if arguments.what == "acceptance":
        acceptance(target, arguments.drafts, arguments.length, arguments.guesses)
        return
    sessions: dict[str, dict[str, Any]] = {"plain": {"draft": None}, "n-grams": {"draft": "ngram"}}
    for draft in arguments.drafts:
        sessions[draft.stem] = {"draft": draft, "cascade": False}
        sessions[f"{draft.stem} and n-grams"] = {"draft": draft}
    if arguments.spec_length is not None:
        target.options["spec_length"] = arguments.spec_length
    speed(target, sessions, of_files(arguments.drafts), arguments.llama_cpp, (0.0, 1.0))


if __name__ == "__main__":
    main()
