"""The gain of copied drafts on real text, and the speed of MatchFinder and History.

    python benchmarks/bench_match.py

Replays the Python standard library's sources, with the bundled model's tokenizer, as if a model had
written them: free code (a module continued after 256 tokens), and edits (a function, then the same
function with one name changed). No model decodes anything: the acceptance is that of a model that
writes exactly this text.
"""

from __future__ import annotations

import ast
import random
import re
import statistics
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_ngram import real_tokens
from specllama import MatchFinder, NGramPredictor, SpecSession
from specllama._core import History
from specllama._core.plan import NGramFollower


class Task(NamedTuple):
    prompt: list[int]
    following: list[int]


class Learned:
    """The drafters' data from a text so far, updated by `learn`."""

    def __init__(self) -> None:
        self.ngrams, self.matches, self.both = NGramPredictor(), MatchFinder(), NGramFollower()

    def learn(self, tokens: list[int]) -> None:
        self.ngrams.update_batch(tokens)
        self.matches.append_batch(tokens)
        self.both.append_batch(tokens)

    def by_ngrams(self, n: int) -> list[int]:
        return [predicted.token for predicted in self.ngrams.predict(n)]

    def by_matches(self, n: int) -> list[int]:
        return [matched.token for matched in self.matches.predict(n)]

    def by_both(self, n: int) -> list[int]:
        """The drafts of a session."""
        return [token for token, _ in self.both.draft(n)]


DRAFTERS: dict[str, Callable[[Learned, int], list[int]]] = {
    "n-grams": Learned.by_ngrams,
    "matches": Learned.by_matches,
    "both": Learned.by_both,
}


def sources() -> list[str]:
    library = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        p
        for p in sorted(library.glob("**/*.py"))
        if not {"site-packages", "test", "tests"} & {*p.parts}
    ]
    random.Random(1).shuffle(paths)
    return [path.read_text("utf-8-sig", errors="replace") for path in paths]


def edits(source: str) -> Iterator[tuple[str, str]]:
    """Yield functions of 10 to 60 lines, each with a copy in which its most used variable is
    renamed."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and 10 <= node.end_lineno - node.lineno <= 60:
            names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
            stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
            used = Counter(one.id for one in names if one.id in stored)
            if used:
                function = "".join(lines[node.lineno - 1 : node.end_lineno])
                name = used.most_common(1)[0][0]
                yield function, re.sub(rf"\b{name}\b", f"new_{name}", function)


def tasks(session: SpecSession) -> dict[str, list[Task]]:
    free: list[Task] = []
    edited: list[Task] = []
    for source in sources():
        tokens = session.tokenize(source)
        if len(free) < 100 and len(tokens) > 1000:
            free.append(Task(tokens[:256], tokens[256:1000]))
        for before, after in list(edits(source))[:3]:
            if len(edited) < 200:
                prompt = session.tokenize(before + "\n")
                edited.append(Task(prompt, session.tokenize(after, add_special=False)))
        if len(free) == 100 and len(edited) == 200:
            break
    return {"edit": edited, "free": free}


def print_curve(name: str, replayed: list[Task]) -> None:
    """Print how often the next token is right, by the length of the match."""
    seen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for task in replayed:
        finder = MatchFinder()
        finder.append_batch(task.prompt)
        for token in task.following:
            for matched in finder.predict(1):
                seen[min(matched.length, 33)] += 1
                right[min(matched.length, 33)] += matched.token == token
            finder.append(token)
    print(f"\n{name}: P(next token accepted | m), and how often m was seen")
    for m in sorted(seen):
        print(f"  {'33+' if m == 33 else m:>4} {right[m] / seen[m]:6.3f} {seen[m]:>7,}")


def accepted(
    replayed: list[Task], draft: Callable[[Learned, int], list[int]], n: int
) -> tuple[float, float]:
    """Return the accepted tokens per round, and per drafted token."""
    n_rounds = n_drafted = n_accepted = 0
    for task in replayed:
        learned = Learned()
        learned.learn(task.prompt)
        at = 0
        while at < len(task.following):
            drafted = draft(learned, n)
            right = 0
            for token, following in zip(drafted, task.following[at:], strict=False):
                if token != following:
                    break
                right += 1
            learned.learn(task.following[at : at + right + 1])
            at += right + 1
            n_rounds += 1
            n_drafted += len(drafted)
            n_accepted += right
    return n_accepted / n_rounds, n_accepted / n_drafted


def print_speed(tokens: list[int]) -> None:
    print("\n    tokens  tokens/s  predict(4)  bytes per token")
    for n in (1_000, 100_000, 1_000_000):
        rates = []
        for _ in range(5):
            rounds = max(1, 20_000 // n)
            start = time.perf_counter()
            for _ in range(rounds):
                finder = MatchFinder()
                finder.append_batch(tokens[:n])
            rates.append(rounds * n / (time.perf_counter() - start))
        times = []
        for token in tokens[n : n + 2_000]:
            start = time.perf_counter()
            finder.predict(4)
            times.append(time.perf_counter() - start)
            finder.append(token)
        print(
            f"{n:>10,}  {statistics.median(rates) / 1e6:>6.2f} M"
            f"  {statistics.median(times) * 1e6:>7.2f} us  {finder.size_bytes / len(finder):>10.1f}"
        )


def print_history_speed(tokens: list[int]) -> None:
    """Print the speed with ten million tokens: the same text ten times, each time with other token
    ids. CPU time, without that of the call from Python."""
    n = 1_000_000
    text, following = np.array(tokens[:n]), np.array(tokens[n:])
    names = [np.random.default_rng(i).permutation(1 + max(tokens)) for i in range(10)]
    history = History(10_100_000)
    start = time.process_time()
    for name in names:
        for part in np.array_split(name[text], n // 2000):
            history.append(part)
    appended = (time.process_time() - start) / (10 * n)
    ends = [names[i % 10][following[i : i + 64]] for i in range(len(following) - 64)]

    def seconds(of: History) -> float:
        start = time.process_time()
        for end in ends:
            of.predict(end, 0)
        return (time.process_time() - start) / len(ends)

    lookup = seconds(history) - seconds(History(1024))
    print(
        f"\nhistory of {history.n_tokens:,} tokens, {history.size_bytes / 1e6:.0f} MB: "
        f"{lookup * 1e6:.2f} us a lookup, {appended * 1e6:.2f} us an appended token"
    )


def main() -> None:
    tokens = real_tokens(1_002_000)
    print_speed(tokens)
    print_history_speed(tokens)
    with SpecSession(draft=None, n_gpu_layers=0) as session:
        workloads = tasks(session)
    for name, replayed in workloads.items():
        print_curve(name, replayed)
        print("\n  accepted per round (per drafted token)\n  draft length", *DRAFTERS, sep="\t")
        for n in (4, 8, 16):
            figures = [accepted(replayed, draft, n) for draft in DRAFTERS.values()]
            print(f"  {n}\t", *(f"{a:.2f} ({share:.0%})" for a, share in figures), sep="\t")


if __name__ == "__main__":
    main()
