"""The gain of a draft model with the types of its file, and with other types.

    python benchmarks/bench_draft_types.py TARGET DRAFT [--types keep q4_0 ...] [--turns 5]
        [--workloads write ...] [--tokens 64] [--spec-length N|auto] [-t N]

Plain decoding and a session for each type answer held-out questions in turn, one of each workload,
prompts included. Drafts have a fixed length (4) or are planned (auto). It prints medians over the
turns: speeds as multiples of plain decoding, by CPU time (also valid on a busy machine) and by
wall-clock time; tokens per round; and the share of drafted tokens that was accepted. Before that,
it measures the draft model by itself: milliseconds of CPU time per token of an answer and of a
prompt. With --turns 0 only this is done.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from specllama import SpecSession, _core
from specllama.workloads.answered import load_answered

N_CTX = 1024


@dataclass
class Turn:
    """Seconds per token, tokens per round, and the share of accepted draft tokens."""

    processor: float
    clock: float
    per_round: float
    accepted: float


def answer(session: SpecSession, questions: list[list[dict[str, str]]], n_tokens: int) -> Turn:
    """Answer all questions without reusing the KV memory."""
    processor, clock = time.process_time(), time.perf_counter()
    tokens = rounds = drafted = accepted = 0
    for messages in questions:
        stats = session.chat(messages, max_tokens=n_tokens, cache_prompt=False).stats
        tokens += stats.generated_tokens
        rounds += stats.rounds
        drafted += stats.drafted
        accepted += stats.accepted
    return Turn(
        (time.process_time() - processor) / tokens,
        (time.perf_counter() - clock) / tokens,
        tokens / rounds,
        accepted / drafted if drafted else 0,
    )


def alone(path: str, n_turns: int, options: dict[str, Any]) -> tuple[float, float]:
    """Return the milliseconds of CPU time that a model takes for a token of an answer, and for one
    of a prompt."""
    prompt, n_tokens = "def quicksort(values):\n" * 20, 32
    decodes, prompts = [], []
    with SpecSession(path, None, **options) as session:
        n_prompt = len(session.tokenize(prompt))
        for _ in range(n_turns):
            start = time.process_time()
            session.generate(prompt, max_tokens=1, cache_prompt=False)
            middle = time.process_time()
            session.generate(prompt, max_tokens=n_tokens + 1, ignore_eos=True)
            decodes.append((time.process_time() - middle) / n_tokens)
            prompts.append((middle - start) / n_prompt)
    return 1000 * median(decodes), 1000 * median(prompts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--types", nargs="+", default=["keep", "auto"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--workloads", nargs="+", default=["write", "translate", "arithmetic", "questions"]
    )
    parser.add_argument("--tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--spec-length", default="4")
    parser.add_argument("-t", "--threads", type=int, default=None)
    arguments = parser.parse_args()
    length = (
        arguments.spec_length if arguments.spec_length == "auto" else int(arguments.spec_length)
    )
    questions = [list(load_answered(name, "held-out")[0].messages) for name in arguments.workloads]
    options = {"n_ctx": N_CTX, "n_threads": arguments.threads, "n_gpu_layers": 0}
    print("| draft model | ms a token | ms a token of a prompt |")
    print("|---|---:|---:|")
    for kind in arguments.types:
        path = _core.draft_in_type(arguments.draft, target=arguments.target, type=kind)
        decode, prefill = alone(path, max(arguments.turns, 3), options)
        print(f"| {kind} | {decode:.1f} | {prefill:.2f} |", flush=True)
    if arguments.turns == 0:
        return
    print()
    with ExitStack() as stack:
        sessions = {"plain": stack.enter_context(SpecSession(arguments.target, None, **options))}
        for kind in arguments.types:
            sessions[kind] = stack.enter_context(
                SpecSession(
                    arguments.target,
                    arguments.draft,
                    draft_type=kind,
                    cascade=False,
                    spec_length=length,
                    **options,
                )
            )
        turns: dict[str, list[Turn]] = {name: [] for name in sessions}
        for _ in range(arguments.turns):
            for name, session in sessions.items():
                turns[name].append(answer(session, questions, arguments.tokens))
    plain = turns["plain"]
    print("| draft model | processor | clock | tokens per round | accepted |")
    print("|---|---:|---:|---:|---:|")
    for name, some in turns.items():
        ratios = [
            (before.processor / one.processor, before.clock / one.clock)
            for before, one in zip(plain, some, strict=True)
        ]
        print(
            f"| {name} | {median(one for one, _ in ratios):.2f} | "
            f"{median(one for _, one in ratios):.2f} | "
            f"{median(one.per_round for one in some):.2f} | "
            f"{100 * median(one.accepted for one in some):.0f} % |"
        )


if __name__ == "__main__":
    main()
