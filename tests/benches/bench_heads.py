"""Heads beside draft models: what the bundled target accepts of their drafts, and the clock.

    python tests/benches/bench_heads.py acceptance models/draft-q8_0.gguf head.gguf
    python tests/benches/bench_heads.py speed models/draft-q8_0.gguf head.gguf \\
        [--llama-cpp DIRECTORY]

Prompts: pieces of the files that no model of the pair was trained on. `acceptance`: by place in a
draft, of those whose tokens before it were accepted, and tokens per round; with `--guesses 3`, of
trees, these alone. `speed`: in turns, the median of the ratios to our plain decoding, prompt by
prompt; with --llama-cpp (bench_peers.py says how to build it) also llama-server on the same files,
greedily, with drafts of two to five tokens.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sysconfig
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from specllama import SpecSession, _core
from specllama.bench.llama_server import LlamaServer, model_flags, serving
from specllama.session import BUNDLED_MODEL

# Of models/README.md.
HELD_OUT = (
    "contextlib", "csv", "getpass", "lzma", "multiprocessing/synchronize", "poplib", "shutil",
    "struct", "tracemalloc", "xml/dom/xmlbuilder",
)  # fmt: skip
N_PROMPT, N_PREDICT = 96, 128  # within the 256 tokens that the pair was trained on
LENGTH = 5
RULES = (
    (0.0, "coupled"), (0.7, "coupled"), (0.7, "rejection"), (1.0, "coupled"), (1.0, "rejection"),
)  # fmt: skip
SESSION: dict[str, Any] = {"n_threads": 1, "n_gpu_layers": 0, "n_ctx": 512}


def prompts(per_file: int) -> list[list[int]]:
    """Of every file its first tokens, and others as far apart as possible."""
    found = []
    with SpecSession(draft=None, **SESSION) as session:
        (begin,) = session.tokenize("")
        for name in HELD_OUT:
            path = Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py"
            tokens = session.tokenize(path.read_text(encoding="utf-8"), add_special=False)
            for i in range(per_file):
                first = (len(tokens) - N_PROMPT) * i // per_file
                found.append([begin, *tokens[max(first, 0) :][:N_PROMPT]])
    return found


class Accepted:
    """What became of the drafts of several generations."""

    def __init__(self) -> None:
        self.tokens = self.rounds = 0
        self.drafted, self.accepted = [0] * LENGTH, [0] * LENGTH

    def add(self, stats: _core.Stats) -> None:
        self.tokens += stats.generated_tokens
        self.rounds += stats.rounds
        for i, n in enumerate(stats.drafted_by_position):
            self.drafted[i] += n
        for i, n in enumerate(stats.accepted_by_position):
            self.accepted[i] += n

    def places(self) -> list[float]:
        """[i]: share of the tokens at place i of a draft, where those before were accepted."""
        before = [self.drafted[0], *self.accepted]
        return [n / max(of, 1) for n, of in zip(self.accepted, before, strict=False)]


def acceptance(drafts: list[Path], per_file: int, guesses: int) -> None:
    texts = prompts(per_file)
    for draft in drafts:
        with SpecSession(
            None, draft, cascade=False, spec_length=LENGTH, spec_tree=guesses, **SESSION
        ) as session:
            for temperature, rule in RULES:
                chosen: Any = {"temperature": temperature, "acceptance": rule}
                found = Accepted()
                for seed, prompt in enumerate(texts):
                    done = session.generate(prompt, seed=seed, max_tokens=N_PREDICT, **chosen)
                    found.add(done.stats)
                print(
                    f"{draft.stem:12} T = {temperature:<4} {rule:10}",
                    *(f"{share:.3f}" for share in found.places() if guesses == 1),
                    f"  {found.tokens / found.rounds:.2f} tokens per round",
                    flush=True,
                )


Speed = Callable[[list[int], int, float], float]
"""Tokens per second behind a prompt, with a seed, at a temperature."""


def of_session(session: SpecSession) -> Speed:
    def speed(prompt: list[int], seed: int, temperature: float) -> float:
        chosen: Any = {"seed": seed, "temperature": temperature, "max_tokens": N_PREDICT}
        return float(session.generate(prompt, **chosen).stats.tokens_per_second)

    return speed


def of_server(server: LlamaServer) -> Speed:
    def speed(prompt: list[int], seed: int, temperature: float) -> float:
        answer = server.complete(prompt, N_PREDICT, cache_prompt=False)
        return answer.n_timed / answer.seconds

    return speed


def servers(drafts: list[Path]) -> dict[str, list[str]]:
    """Return what llama-server is told, by name of the setting."""
    settings: dict[str, list[str]] = {"llama-server, plain": []}
    for draft, n in itertools.product(drafts, range(2, LENGTH + 1)):
        with draft.open("rb") as file:
            kind = "draft-eagle3" if b"eagle3" in file.read(4096) else "draft-simple"
        flags = ["--spec-type", kind, "-md", str(draft), "--spec-draft-n-max", str(n)]
        settings[f"llama-server, {kind} {n}"] = flags
    return settings


def speed(drafts: list[Path], per_file: int, llama_cpp: Path | None, **options: Any) -> None:
    texts = prompts(per_file)
    sessions: dict[str, dict[str, Any]] = {"plain": {"draft": None}, "n-grams": {"draft": "ngram"}}
    for draft in drafts:
        sessions[draft.stem] = {"draft": draft, "cascade": False}
        sessions[f"{draft.stem} and n-grams"] = {"draft": draft}
    with ExitStack() as stack:
        contestants: dict[str, Speed] = {}
        for name, own in sessions.items():
            session = SpecSession(None, **own, **(SESSION | options))
            contestants[name] = of_session(stack.enter_context(session))
        of_servers = [] if llama_cpp is None else [*servers(drafts).items()]
        for name, flags in of_servers:
            assert llama_cpp is not None
            common = model_flags(str(BUNDLED_MODEL), n_threads=1, n_ctx=512, kv_type="f16")
            all_flags = [*common, "-fa", "on", "-dev", "none", "-devd", "none", *flags]
            server = serving(llama_cpp / "llama-server", all_flags, n_slots=1)
            contestants[name] = of_server(stack.enter_context(server))
        compare(contestants, texts, 0.0)
        compare({name: contestants[name] for name in sessions}, texts, 1.0)


def compare(contestants: dict[str, Speed], texts: list[list[int]], temperature: float) -> None:
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for seed, prompt in enumerate(texts):
        for name in list(contestants) if seed % 2 else list(contestants)[::-1]:
            speeds[name].append(contestants[name](prompt, seed, temperature))
    for name, some in speeds.items():
        ratios = [one / plain for one, plain in zip(some, speeds["plain"], strict=True)]
        print(
            f"T = {temperature}  {name:28} {statistics.median(some):7.0f} tokens/s, "
            f"{statistics.median(ratios):.2f} of plain",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("acceptance", "speed"))
    parser.add_argument("drafts", type=Path, nargs="+", metavar="FILE.gguf")
    parser.add_argument("--per-file", type=int, default=3, help="prompts of each file (3)")
    parser.add_argument("--guesses", type=int, default=1, help="at a position (1)")
    parser.add_argument("--spec-length", type=int, help="tokens per draft (the planner's choice)")
    parser.add_argument("--llama-cpp", type=Path, help="where llama-server is; for `speed`")
    arguments = parser.parse_args()
    if arguments.what == "acceptance":
        acceptance(arguments.drafts, arguments.per_file, arguments.guesses)
    else:
        fixed = {} if arguments.spec_length is None else {"spec_length": arguments.spec_length}
        speed(arguments.drafts, arguments.per_file, arguments.llama_cpp, **fixed)


if __name__ == "__main__":
    main()
