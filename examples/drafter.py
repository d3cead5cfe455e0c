"""A custom drafter in Python. It finds the last earlier place of the last two tokens, and drafts
the tokens that followed there.

    python examples/drafter.py model.gguf "The prompt."
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from specllama import Drafter, SpecllamaError, SpecSession


class Copies(Drafter):
    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        pairs = np.flatnonzero((tokens[:-2] == tokens[-2]) & (tokens[1:-1] == tokens[-1]))
        return tokens[pairs[-1] + 2 :][:max_tokens].tolist() if pairs.size else []


def generate(model: str, prompt: str) -> None:
    # A fixed length always drafts, for the demonstration; without it, only drafts that pay.
    with SpecSession(model, draft=Copies(), spec_length=4) as session:
        stream = session.stream(prompt, max_tokens=64)
        for chunk in stream:
            print(chunk.text, end="", flush=True)
        stats = stream.stats
    print(
        f"\ndrafted {stats.drafted}, accepted {stats.accepted}, errors {stats.drafter_errors}, "
        f"tokens per round {stats.tokens_per_round:.2f}",
        file=sys.stderr,
    )


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: drafter.py MODEL PROMPT")
    try:
        generate(sys.argv[1], sys.argv[2])
    except SpecllamaError as error:
        sys.exit(f"drafter.py: {error}")


if __name__ == "__main__":
    main()
