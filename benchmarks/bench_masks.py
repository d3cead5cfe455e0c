"""The cost of a grammar per token: advancing it, and masks over the whole vocabulary.

    python benchmarks/bench_masks.py -m model.gguf

Generates the extractions of bench_grammar.py with the grammar's own drafts. For each text it prints
microseconds per token for choosing and for drafting, and for choosing without a grammar (the same
tokens are replayed); drafted, accepted and forced tokens.
"""

from __future__ import annotations

import argparse
from typing import Any

from bench_grammar import SCHEMAS
from specllama import Drafter, SpecSession
from specllama.workloads.answered import load_answered


class Nothing(Drafter):
    """Drafts nothing, so that only the grammar drafts."""

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[int]:
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-n", "--max-tokens", type=int, default=128)
    arguments = parser.parse_args()
    print(f"{'text':24}{'tokens':>7}{'choose':>8}{'draft':>7}{'free':>6}  drafted accepted forced")
    totals = [0.0] * 7
    with SpecSession(arguments.model, Nothing(), spec_length=8, n_ctx=4096) as session:
        for one in load_answered("extract"):
            schema = SCHEMAS[one.name]
            found = session.chat(one.messages, json_schema=schema, max_tokens=arguments.max_tokens)
            prompt = session.render_chat(one.messages)
            free = session.replay(prompt, found.tokens).stats
            stats, n = found.stats, found.stats.generated_tokens
            drafted, accepted = stats.by_drafter["grammar"]
            row = [
                n,
                stats.seconds.choose * 1e6,
                stats.seconds.draft * 1e6,
                free.seconds.choose * 1e6,
            ]
            row += [drafted, accepted, stats.forced]
            totals = [a + b for a, b in zip(totals, row, strict=True)]
            show(one.name, row)
    show("all", totals)


def show(name: str, row: list[float]) -> None:
    """Print a line of sums; microseconds are per token."""
    n, choose, draft, free, drafted, accepted, forced = row
    times = f"{choose / n:8.0f}{draft / n:7.0f}{free / n:6.0f}"
    print(f"{name:24}{n:7.0f}{times}{drafted:9.0f}{accepted:9.0f}{forced:7.0f}", flush=True)


if __name__ == "__main__":
    main()
