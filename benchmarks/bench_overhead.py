"""The time of a round besides the decodes of the target, in microseconds:

    python benchmarks/bench_overhead.py [--repeat N]

The bundled pair answers one request, and eight at once, with n-grams, and with n-grams and the
draft model. "free" is the model's own text, which is almost never in the prompt; "copies" replays a
part of the prompt. The last answer of a session is shown: by then its prompt is in the memory, and
the cost of decodes is known. The time includes the draft model's decodes; the last column has the
number of their tokens. With several requests, the time is that of a round for all together, and the
other columns are those of one request. The time of Python between two rounds is not included.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from specllama import Generation, SpecSession
from specllama.session import BUNDLED_DRAFT

N_TOKENS = 200
DRAFTS = {"n-grams": "ngram", "draft model": str(BUNDLED_DRAFT)}
CODE = Path(__file__).read_text()[:2500]


def answer(session: SpecSession, kind: str, number: int) -> Generation:
    """Generate or replay the answer to a request."""
    if kind == "free":
        return session.generate(f"class Stack{number}:", max_tokens=N_TOKENS)
    tokens = session.tokenize(CODE[10 * number :])[:N_TOKENS]
    return session.replay(f"# {number}\n{CODE}\n# The same again:\n", tokens)


def line(generation: Generation) -> str:
    """Return the time of a round and its parts, and the numbers of drafts."""
    stats = generation.stats
    seconds, n = stats.seconds, stats.rounds
    beside = seconds.total - seconds.prefill - seconds.verify
    parts = (beside, seconds.draft, seconds.choose, seconds.text)
    numbers = "".join(f"{1e6 * part / n:>9.1f}" for part in parts)
    counts = (n, stats.drafted, stats.accepted, stats.draft_decoded_tokens)
    return numbers + "".join(f"{count:>9}" for count in counts)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The time of a round without target decodes.")
    parser.add_argument("--repeat", type=int, default=3, help="answers of each session (3)")
    arguments = parser.parse_args(argv)
    names = ("beside", "draft", "choose", "text", "rounds", "drafted", "accepted", "decoded")
    print(f"{'microseconds a round':<32}" + "".join(f"{name:>9}" for name in names))
    for n in (1, 8):
        for drafter, draft in DRAFTS.items():
            for kind in ("copies", "free"):
                with (
                    SpecSession(draft=draft, n_seq=n, n_ctx=2048, n_threads=1) as session,
                    ThreadPoolExecutor(n) as threads,
                ):
                    for _ in range(arguments.repeat):
                        answers = threads.map(partial(answer, session, kind), range(n))
                        first, *_ = list(answers)
                print(f"{f'{n} at once, {drafter}, {kind}':<32}{line(first)}")


if __name__ == "__main__":
    main()
