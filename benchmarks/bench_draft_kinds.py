"""The gain of a draft model in addition to n-grams, by kind of text, by arithmetic.

    python benchmarks/bench_draft_kinds.py [--half first|second] [--seeds N] [--step S] [--tokens N]
        [--curves FILE.json] [--apart] [--warm]

Uses the answers of tests/data/answers.jsonl that have tokens of a draft model, in the orders of
several seeds, as in bench_planner.py. A line is a machine and a kind of text; speeds are multiples
of plain decoding:

    ngram       only n-grams
    fixed       only the draft model, with the best of the LENGTHS for this kind
    both        n-grams and the draft model, planned
    share       `both` as a share of the best of these and of plain decoding
    / ngram     `both` as a multiple of `ngram`

With --apart every kind has its own sessions; otherwise a session answers all. With --warm the
session has answered all of them once before, in another order."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from answers import Answer, answers
from bench_planner import CURVES, Costs, Machine, cut, read_costs, room, time_of, time_with_model
from tree_rounds import catching_up

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)


def fixed_time(answer: Answer, costs: Costs, n_draft: int, step: float) -> float:
    """Return the time in plain decodes with only the draft model and drafts of n_draft tokens."""
    time = 1.0  # the round after the prompt drafts nothing
    i, seen = 1, -answer.drafts.n_prompt
    while i < len(answer.drafts):
        n = min(n_draft, room(answer.drafts, i))
        if n > 0:
            time += step * (n + catching_up(costs.curve, i - seen))
        time += float(costs.curve[n])
        accepted = min(n, answer.model_run[i])
        seen = i + min(n, accepted + 1)
        i += accepted + 1
    return time


def measure(machine: Machine, step: float) -> None:
    """Give the planner the measurements of a draft model that a session makes once."""
    for n in (1, 2, 4, 8, 16, 32, 64):
        taken = step * (1 + catching_up(machine.curve, n - 1))
        machine.planner.observe_drafting(1, 1, n - 1, 0, machine.heard(taken))


def times(
    costs: Costs, texts: Sequence[Answer], seeds: int, step: float, *, apart: bool, warm: bool
) -> dict[str, dict[str, float]]:
    """Return [kind][contestant]: the time in plain decodes for all its texts in all orders."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    kinds = sorted({one.kind for one in texts})
    for seed in range(seeds):
        order = [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))]
        for among in [[kind] for kind in kinds] if apart else [kinds]:
            ngram, both = Machine(costs, seed), Machine(costs, seed)
            measure(both, step)
            for i in np.random.default_rng(seed + 1000).permutation(len(texts)) if warm else []:
                time_of(texts[i], ngram)
                time_with_model(texts[i], both, step)
            for one in order:
                if one.kind not in among:
                    continue
                of_kind = found[one.kind]
                of_kind["plain"] += len(one.drafts)
                of_kind["ngram"] += time_of(one, ngram)[-1]
                of_kind["both"] += time_with_model(one, both, step)
                for n in LENGTHS:
                    of_kind[f"fixed {n}"] += fixed_time(one, costs, n, step)
    return found


def show(name: str, found: dict[str, dict[str, float]]) -> list[tuple[float, float]]:
    """Print the lines of a machine; return the columns `share` and `/ ngram`."""
    shares = []
    for kind, of_kind in found.items():
        speed = {one: of_kind["plain"] / time for one, time in of_kind.items()}
        fixed = max(LENGTHS, key=lambda n: speed[f"fixed {n}"])
        alone = speed[f"fixed {fixed}"]
        share = speed["both"] / max(1, speed["ngram"], alone, speed["both"])
        shares.append((share, speed["both"] / speed["ngram"]))
        print(
            f"{name:12}{kind:10}{speed['ngram']:8.2f}{alone:8.2f} ({fixed:2}){speed['both']:8.2f}"
            f"{share:8.2f}{shares[-1][1]:8.2f}"
        )
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=Answer.most)
    parser.add_argument("--curves", type=Path, default=CURVES)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--warm", action="store_true")
    arguments = parser.parse_args()
    texts = [cut(one, arguments.tokens) for one in answers(arguments.half) if one.draft]
    print(f"{'':22}{'ngram':>8}{'fixed':>8}{'':5}{'both':>8}{'share':>8}{'/ ngram':>8}")
    everything = []
    for name, costs in read_costs(arguments.curves, told=True).items():
        found = times(
            costs,
            texts,
            arguments.seeds,
            arguments.step,
            apart=arguments.apart,
            warm=arguments.warm,
        )
        shares = np.array(show(name, found))
        everything.append(shares)
        print(f"{name:12}mean of shares {np.exp(np.log(shares).mean(0))}, least {shares.min(0)}")
    shares = np.concatenate(everything)
    print(f"all         mean of shares {np.exp(np.log(shares).mean(0))}, least {shares.min(0)}")


if __name__ == "__main__":
    main()
