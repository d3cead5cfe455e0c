"""Train an EAGLE-3 head for the bundled target: `python models/train_head.py --out head.gguf`.

The target is frozen; the head learns its distributions, drafting as it will: the first token from
the target's states, the others from its own. Needs torch >= 2.9, tokenizers, gguf and numpy.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import corpus
import torch
from corpus import Tokens
from evaluate import WINDOW, windows
from head import Head, export, read
from network import Network, load
from torch.nn import functional
from trainer import make_optimizers, schedule

HERE = Path(__file__).parent
STEPS = 3
"""Tokens that are drafted in training behind every position."""
DECAY = 0.8
"""Weight of a drafted token's loss, by that of the one before."""


def train(
    target: Network, tokens: Tokens, *, steps: int, batch: int, length: int, learning_rate: float
) -> Head:
    """A head ready to evaluate, after `steps` batches of `batch` x `length` tokens."""
    torch.manual_seed(0)
    head = Head(target.config.width, target.config.heads, ffn=2 * target.config.width)
    optimizers = make_optimizers(head, learning_rate)
    corpus_tokens = torch.from_numpy(tokens)
    began = time.monotonic()
    for step in range(steps):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * schedule(step, steps)
        starts = torch.randint(len(tokens) - length, (batch, 1))
        inputs = corpus_tokens[starts + torch.arange(length)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            features, logits = read(target, inputs)
            wanted = logits[:, 1:].float().softmax(-1)
            drafted = head(features[:, :-1], target.token_embd(inputs[:, 1:]), STEPS)
            loss = torch.zeros(())
            for ahead, state in enumerate(drafted):
                found = functional.linear(state[:, ahead:], target.token_embd.weight).float()
                one = functional.cross_entropy(found.flatten(0, 1), wanted[:, ahead:].flatten(0, 1))
                loss = loss + DECAY**ahead * one
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        size = torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        if step % 25 == 0:
            print(
                f"step {step}: loss {loss.item():.3f}, gradient {size:.2f}, "
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )
    return head.eval()


@torch.no_grad()
def agreement(head: Head, target: Network, hold_out: Tokens, most: int = 8) -> list[float]:
    """Of every place in a draft, from the first: how often its likeliest token is the target's,
    those before it being those of the text. Over the first windows of the hold-out."""
    right, n = [0.0] * most, 0
    for i, (inputs, _) in enumerate(windows(hold_out, WINDOW)):
        if i == 24 or inputs.shape[1] < WINDOW:
            break
        features, logits = read(target, inputs)
        wanted = logits[:, 1:].argmax(-1)
        drafted = head(features[:, :-1], target.token_embd(inputs[:, 1:]), most)
        for ahead, state in enumerate(drafted):
            found = functional.linear(state, target.token_embd.weight).argmax(-1)
            right[ahead] += (found == wanted)[:, most:].float().mean().item()
        n += 1
    return [one / n for one in right]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, default=HERE / "target-q8_0.gguf")
    parser.add_argument("--out", type=Path, default=Path("head-q8_0.gguf"))
    parser.add_argument("--steps", type=int, default=600, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=8, help="default: %(default)s")
    arguments = parser.parse_args()
    target, tokenizer = load(arguments.target)
    target.requires_grad_(False)
    files = corpus.read_files()
    tokens, hold_out = (corpus.encode(tokenizer, part) for part in (files.train, files.hold_out))
    head = train(
        target, tokens, steps=arguments.steps, batch=arguments.batch, length=256, learning_rate=6e-3
    )
    export(head, target, tokenizer, arguments.out, "q8_0")
    places = ", ".join(f"{one:.3f}" for one in agreement(head, target, hold_out))
    print(f"greedy agreement by place in the draft: {places}")


if __name__ == "__main__":
    main()
