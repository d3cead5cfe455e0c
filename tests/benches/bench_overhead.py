"""What a round takes beside the decodes of the target, in microseconds:

    python tests/benches/bench_overhead.py [--repeat N]

The bundled pair answers alone and eight requests at once, where all is copied and where little is,
with n-grams and with the draft model beside them. Of the answers of a session the last is shown,
whose prompt is known by then and what decodes cost as well. What the draft model's own decodes take
is in there: how many tokens those were is the last column. Of many requests the time is that of the
round, for all together; what Python does between two rounds is not in there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from specllama import Generation, SpecSession
from specllama.session import BUNDLED_DRAFT

N_TOKENS = 200
DRAFTS = {"n-grams": "ngram", "draft model": str(BUNDLED_DRAFT)}


def prompts(n: int) -> dict[str, list[str]]:
    """Return prompts that are continued by copies, and such that are not."""
    code = Path(__file__).read_text()[:2500]
    return {
        "copies": [f"# {i}\n{code}\n# The same again:\n\n{code[: 300 + 10 * i]}" for i in range(n)],
        "free": [f"class Stack{i}:" for i in range(n)],
    }


def line(generation: Generation) -> str:
    """Return what a round took, and how much of it was for what."""
    seconds, n = generation.stats.seconds, generation.stats.rounds
    beside = seconds.total - seconds.prefill - seconds.verify
    parts = (beside, seconds.draft, seconds.choose, seconds.text)
    numbers = "".join(f"{1e6 * part / n:>9.1f}" for part in parts)
    return f"{numbers}{n:>9}{generation.stats.draft_decoded_tokens:>9}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What a round takes beside the target's decodes.")
    parser.add_argument("--repeat", type=int, default=3, help="answers of each session (3)")
    arguments = parser.parse_args(argv)
    names = ("beside", "draft", "choose", "text", "rounds", "decoded")
    print(f"{'microseconds a round':<32}" + "".join(f"{name:>9}" for name in names))
    for n in (1, 8):
        for drafter, draft in DRAFTS.items():
            for kind, texts in prompts(n).items():
                with SpecSession(draft=draft, n_seq=n, n_ctx=2048, n_threads=1) as session:
                    tokens = [session.tokenize(text) for text in texts]
                    for _ in range(arguments.repeat):
                        first, *_ = session.generate(tokens, max_tokens=N_TOKENS)
                print(f"{f'{n} at once, {drafter}, {kind}':<32}{line(first)}")


if __name__ == "__main__":
    main()
