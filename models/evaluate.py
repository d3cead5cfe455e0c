"""Measure a pair on the held-out files: `python models/evaluate.py [TARGET DRAFT]`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus
import torch
from corpus import Tokens
from network import CONTEXT, Network, load
from torch import Tensor
from torch.nn import functional

HERE = Path(__file__).parent
WINDOW = 384
"""Tokens of a window. Training windows have 256; this tests a little more."""


@dataclass(frozen=True)
class Figures:
    """Means over all held-out tokens, computed in float32."""

    target_loss: float
    """Cross-entropy of the target, nats per token."""
    draft_loss: float
    """Cross-entropy of the draft model, nats per token."""
    agreement: float
    """Share of positions at which both models have the same most likely token (T = 0)."""
    overlap: float
    """E[sum of min(p, q)] at T = 1: the acceptance rate of rejection sampling."""

    def __str__(self) -> str:
        return (
            f"hold-out loss {self.target_loss:.3f} (target) and {self.draft_loss:.3f} (draft) nats "
            f"per token; greedy agreement {self.agreement:.3f}; "
            f"E[min(p, q)] at T = 1 {self.overlap:.3f}"
        )


def windows(tokens: Tokens, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Cut into consecutive windows: inputs (1, n) and targets (n,), n = `size` except at the end.

    Each window begins with an empty context.
    """
    for start in range(0, len(tokens) - 1, size):
        window = torch.from_numpy(tokens[start : start + size + 1])
        yield window[None, :-1], window[1:]


@torch.no_grad()
def loss(network: Network, hold_out: Tokens) -> float:
    """Cross-entropy in nats per token."""
    total = sum(
        functional.cross_entropy(network(inputs)[0], targets, reduction="sum").item()
        for inputs, targets in windows(hold_out, WINDOW)
    )
    return total / (len(hold_out) - 1)


@torch.no_grad()
def evaluate(target: Network, draft: Network, hold_out: Tokens, window: int = WINDOW) -> Figures:
    target_loss = draft_loss = agreed = overlap = 0.0
    for inputs, targets in windows(hold_out, window):
        p, q = target(inputs)[0], draft(inputs)[0]
        target_loss += functional.cross_entropy(p, targets, reduction="sum").item()
        draft_loss += functional.cross_entropy(q, targets, reduction="sum").item()
        agreed += (p.argmax(-1) == q.argmax(-1)).sum().item()
        overlap += torch.minimum(p.softmax(-1), q.softmax(-1)).sum().item()
    count = len(hold_out) - 1
    return Figures(target_loss / count, draft_loss / count, agreed / count, overlap / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "draft"):
        parser.add_argument(
            name,
            nargs="?",
            type=Path,
            default=HERE / f"{name}-q8_0.gguf",
            help=".gguf, or .pt with tokenizer.json in its folder; default: the bundled file",
        )
    parser.add_argument(
        "--window",
        type=int,
        metavar="TOKENS",
        default=WINDOW,
        help="longest context; default: %(default)s",
    )
    arguments = parser.parse_args()
    if not 1 <= arguments.window <= CONTEXT:
        parser.error(f"--window must be 1 to {CONTEXT}")

    target, tokenizer = load(arguments.target)
    draft, draft_tokenizer = load(arguments.draft)
    if tokenizer.get_vocab() != draft_tokenizer.get_vocab():
        parser.error("the two models have different vocabularies")
    files = corpus.read_files()
    hold_out = corpus.encode(tokenizer, files.hold_out)
    characters = sum(map(len, files.hold_out)) / len(hold_out)
    print(
        f"files: {len(files.train)} to train, {len(files.hold_out)} held out; tokens: "
        f"{len(corpus.encode(tokenizer, files.train))} to train, {len(hold_out)} held out; "
        f"{characters:.2f} characters per token"
    )
    print(evaluate(target, draft, hold_out, arguments.window))


if __name__ == "__main__":
    main()
