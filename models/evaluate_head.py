"""Measure a head or block drafter.

`python models/evaluate_head.py HEAD.gguf` measures one for the bundled target, and the draft model
for comparison. With `--target MODEL.gguf --texts held-out.jsonl` it measures one for another
target.

At every token of the held-out files, or of a file of answers.py, it computes the probability that
the target accepts the first, second, ... token of a draft if the tokens before it are right, and
from this the tokens of a round.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import corpus
import numpy as np
import torch
from corpus import Tokens
from evaluate import HERE, windows
from gguf import GGUFReader
from network import CONTEXT, Network, load, load_gguf
from state_reader import StateReader, layers_read
from torch import Tensor
from torch.nn import functional
from train_head import KINDS

TEMPERATURES = (0.0, 0.7, 1.0)

Row = list[float]
"""Acceptance by temperature."""


def accepted(wanted: Tensor, said: Tensor) -> Tensor:
    """Sums over all rows of (rows, vocabulary) logits, by temperature: at 0, how often both have
    the same most likely token; else sum of min(p, q)."""
    sums = [(wanted.argmax(-1) == said.argmax(-1)).sum()]
    for temperature in TEMPERATURES[1:]:
        p, q = (wanted / temperature).softmax(-1), (said / temperature).softmax(-1)
        sums.append(torch.minimum(p, q).sum())
    return torch.stack(sums)


@torch.no_grad()
def evaluate_head(
    target: Network, head: StateReader, hold_out: Tokens, window: int, places: int
) -> list[Row]:
    """Return the acceptance by position in a draft."""
    sums = torch.zeros(places, len(TEMPERATURES))
    counts = torch.zeros(places, 1)
    for inputs, _ in windows(hold_out, window):
        if inputs.shape[1] <= max(places, head.longest or 0):  # only the last window
            continue
        last, states = target.with_inputs(inputs, layers_read(target.config))
        wanted = functional.linear(last[0], target.output_weight)
        drafted = head.by_place(target, inputs, torch.cat(states, dim=-1), places)
        for place, said in enumerate(drafted):
            sums[place] += accepted(wanted[1 + place :][: len(said)], head.said_of_all(said))
            counts[place] += len(said)
    rows_of_figures: list[Row] = (sums / counts).tolist()
    return rows_of_figures


def per_round(rows: list[Row]) -> Row:
    """Tokens of a round with a whole draft, from the acceptance at its positions."""
    reached = torch.tensor(rows).cumprod(0)
    tokens: Row = (1 + reached.sum(0)).tolist()
    return tokens


@torch.no_grad()
def evaluate_draft(target: Network, draft: Network, hold_out: Tokens, window: int) -> Row:
    """Return the acceptance of a draft model, which is the same at every position."""
    sums = torch.zeros(len(TEMPERATURES))
    count = 0
    for inputs, _ in windows(hold_out, window):
        # A head drafts nothing after the first token.
        sums += accepted(target(inputs)[0, 1:], draft(inputs)[0, 1:])
        count += inputs.shape[1] - 1
    row: Row = (sums / count).tolist()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("head", type=Path, help="GGUF file of train_head.py")
    parser.add_argument("--target", type=Path, help="GGUF; default: the bundled one")
    parser.add_argument("--texts", type=Path, help="file of answers.py, with --target")
    parser.add_argument("--window", type=int, default=256, help="default: %(default)s")
    parser.add_argument("--tokens", type=int, help="most tokens of the text; default: all")
    parser.add_argument("--places", type=int, default=5, help="default: %(default)s")
    arguments = parser.parse_args()
    if not 1 <= arguments.window <= CONTEXT:
        parser.error(f"--window must be 1 to {CONTEXT}")
    if arguments.tokens is not None and arguments.tokens <= arguments.window:
        parser.error("--tokens must be more than --window")
    if not 1 <= arguments.places < arguments.window:
        parser.error("--places must be from 1 and less than --window")

    if (arguments.target is None) != (arguments.texts is None):
        parser.error("--target and --texts go together")
    places = arguments.places
    rows: dict[str, Row] = {}
    if arguments.target is None:
        target, tokenizer = load(HERE / "target-q8_0.gguf")
        draft, _ = load(HERE / "draft-q8_0.gguf")
        hold_out = corpus.encode(tokenizer, corpus.read_files().hold_out)[: arguments.tokens]
        row = evaluate_draft(target, draft, hold_out, arguments.window)
        rows |= {"draft model": row, "  tokens per round": per_round([row] * places)}
    else:
        target = load_gguf(arguments.target)
        hold_out = np.concatenate(corpus.read_answers(arguments.texts))[: arguments.tokens]
    head = kind_of(arguments.head).load(arguments.head, target.config)
    if head.longest is not None and places > head.longest:
        parser.error(f"--places is {places}, but {arguments.head} drafts at most {head.longest}")
    print(f"{'':18}", *(f"T = {temperature:<5g}" for temperature in TEMPERATURES))
    found = evaluate_head(target, head, hold_out, arguments.window, places)
    rows |= {f"{head.name}, token {place}": row for place, row in enumerate(found, 1)}
    rows["tokens per round"] = per_round(found)
    for name, row in rows.items():
        print(f"{name:18}", *(f"{figure:<9.3f}" for figure in row))


def kind_of(path: Path) -> type[StateReader]:
    """Return the kind of drafter in a file. Exits with a message for an unknown architecture."""
    architecture = GGUFReader(path).fields["general.architecture"].contents()
    for kind in KINDS.values():
        if kind.architecture == architecture:
            return kind
    raise SystemExit(f"{path} has the architecture {architecture}, which is not supported here")


if __name__ == "__main__":
    main()
