"""Heads beside draft models: what the bundled target accepts of their drafts, and the clock.

    python tests/benches/bench_heads.py acceptance models/draft-q8_0.gguf head.gguf
    python tests/benches/bench_heads.py speed models/draft-q8_0.gguf head.gguf

Prompts: pieces of the files that no model of the pair was trained on. `acceptance`: by place in a
draft, of those whose tokens before it were accepted, and tokens per round; with `--guesses 3`, of
trees, these alone. `speed`: sessions in turns, the median of the ratios to plain decoding, prompt
by prompt.
"""

from __future__ import annotations

import argparse
import statistics
import sysconfig
from pathlib import Path
from typing import Any

from specllama import SpecSession, _core

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


def speed(drafts: list[Path], per_file: int, **options: Any) -> None:
    texts = prompts(per_file)
    contestants: dict[str, dict[str, Any]] = {
        "plain": {"draft": None},
        "n-grams": {"draft": "ngram"},
    }
    for draft in drafts:
        contestants[draft.stem] = {"draft": draft, "cascade": False}
        contestants[f"{draft.stem} and n-grams"] = {"draft": draft}
    sessions = {
        name: SpecSession(None, **contestant, **(SESSION | options))
        for name, contestant in contestants.items()
    }
    for temperature in (0.0, 1.0):
        chosen: Any = {"temperature": temperature, "max_tokens": N_PREDICT}
        speeds: dict[str, list[float]] = {name: [] for name in sessions}
        for seed, prompt in enumerate(texts):
            order = list(sessions) if seed % 2 else list(sessions)[::-1]
            for name in order:
                stats = sessions[name].generate(prompt, seed=seed, **chosen).stats
                speeds[name].append(stats.tokens_per_second)
        for name, some in speeds.items():
            ratios = [one / plain for one, plain in zip(some, speeds["plain"], strict=True)]
            print(
                f"T = {temperature}  {name:24} {statistics.median(some):7.0f} tokens/s, "
                f"{statistics.median(ratios):.2f} of plain",
                flush=True,
            )
    for session in sessions.values():
        session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("acceptance", "speed"))
    parser.add_argument("drafts", type=Path, nargs="+", metavar="FILE.gguf")
    parser.add_argument("--per-file", type=int, default=3, help="prompts of each file (3)")
    parser.add_argument("--guesses", type=int, default=1, help="at a position (1)")
    parser.add_argument("--spec-length", type=int, help="tokens per draft (the planner's choice)")
    arguments = parser.parse_args()
    if arguments.what == "acceptance":
        acceptance(arguments.drafts, arguments.per_file, arguments.guesses)
    else:
        fixed = {} if arguments.spec_length is None else {"spec_length": arguments.spec_length}
        speed(arguments.drafts, arguments.per_file, **fixed)


if __name__ == "__main__":
    main()
