"""The planner with block drafters, by arithmetic, at the costs of several machines.

    python benchmarks/bench_blocks.py [--seeds N] [--tokens N] [--requests N] [--markdown]

A block has 15 tokens. Drafting it costs a fraction of a plain decode, however many of its tokens
are verified. The token at position j, after right ones, is right with a probability given by a
profile: "0.85 falling by 0.03", "0.6" or "0.35". The drafter reports this probability as its
confidence, and the planner must learn its meaning. Observed times have 5 % noise.

A line has a profile, the cost of a block, and a machine of tests/data/curves.json. A session
answers the requests one after another. Speeds are multiples of plain decoding:

    planned     speed with the planner
    best        speed with the best fixed length in hindsight, 0 (plain decoding) included
    of best     planned / best
    asked       share of the rounds for which a block was drafted

With --markdown: for docs/measured/heads.md, the planned speed on each machine, and the lowest share
of the best fixed length."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_planner import Costs, Machine, read_costs
from numpy.typing import NDArray
from specllama._core import Source
from specllama._core.plan import Evidence, PlannedRound

CURVES = Path(__file__).parents[1] / "tests" / "data" / "curves.json"
BLOCK = 15
PROFILES = {
    "0.85 falling by 0.03": [0.85 - 0.03 * j for j in range(BLOCK)],
    "0.6": [0.6] * BLOCK,
    "0.35": [0.35] * BLOCK,
}
COSTS = (0.1, 0.3, 0.6)
PROMPT = 100


@dataclass
class Answers:
    """Texts with a known number of right tokens of a block at each position.

    Attributes:
        right: These numbers, shape [n_requests][n_tokens].
        rates: Probabilities by position in a block.
    """

    right: NDArray[np.int64]
    rates: list[float]

    @classmethod
    def drawn(cls, rates: list[float], n_requests: int, n_tokens: int, seed: int) -> Answers:
        rng = np.random.default_rng(seed)
        hits = rng.random((n_requests, n_tokens, BLOCK)) < rates
        return cls(np.cumprod(hits, axis=-1).sum(-1), rates)


def fixed_time(answers: Answers, costs: Costs, block: float, length: int) -> float:
    """Return the time, in plain decodes, with drafts of `length` tokens."""
    time = 0.0
    for right in answers.right.tolist():
        i = 0
        while i < len(right):
            g = min(length, len(right) - 1 - i)
            time += float(costs.curve[g]) + (block if g > 0 else 0.0)
            i += min(g, right[i]) + 1
    return time


def planned_time(answers: Answers, machine: Machine, block: float) -> tuple[float, float]:
    """Return the time in plain decodes, and the share of rounds for which a block was drafted."""
    planner = machine.planner
    planner.set_tokens_per_step(BLOCK)
    evidence = [Evidence(Source.model, 0, rate) for rate in answers.rates]
    time, n_asked, n_rounds = 0.0, 0, 0
    for right in answers.right.tolist():
        regime = planner.begin(0.0, PROMPT)
        i = 0
        while i < len(right):
            room = min(BLOCK, len(right) - 1 - i)
            at = {"max_draft": room, "n_left": len(right) - i}
            planned = PlannedRound(regime, PROMPT + i, **at)
            planner.choose([planned])
            spent = 0.0
            if planner.should_continue(planned, []):
                spent = machine.heard(block)
                planner.observe_drafting(1, 1, 0, PROMPT + i, spent)
                before = planned.choice
                planned = PlannedRound(
                    regime, PROMPT + i, spent=spent, without_draft_model=before, **at
                )
                planned.add(evidence[:room])
                planner.choose([planned])
                n_asked += 1
                time += block
            accepted = min(planned.choice.n_draft, right[i])
            time += machine.decode([planned], PROMPT + i)
            n_right = [min(right[i], accepted + 1, room)] if spent else []
            planned.on_result(accepted, n_right)
            planner.learn(planned)
            n_rounds += 1
            i += accepted + 1
    return time, n_asked / n_rounds


@dataclass(frozen=True)
class Line:
    """The result for a profile, a cost of a block and a machine; speeds relative to plain
    decoding."""

    profile: str
    block: float
    machine: str
    planned: float
    best: float
    asked: float


def lines(n_seeds: int, n_requests: int, n_tokens: int) -> Iterator[Line]:
    for profile, rates in PROFILES.items():
        for block in COSTS:
            for name, costs in read_costs(CURVES, told=True).items():
                planned, best, asked = [], [], []
                for seed in range(n_seeds):
                    answers = Answers.drawn(rates, n_requests, n_tokens, seed)
                    time, share = planned_time(answers, Machine(costs, seed), block)
                    planned.append(answers.right.size / time)
                    best.append(
                        answers.right.size
                        / min(fixed_time(answers, costs, block, g) for g in range(BLOCK + 1))
                    )
                    asked.append(share)
                means = [float(np.mean(one)) for one in (planned, best, asked)]
                yield Line(profile, block, name, *means)


def show_markdown(all_lines: list[Line]) -> None:
    machines = list(dict.fromkeys(line.machine for line in all_lines))
    print(f"| accepted | block | {' | '.join(machines)} | of best |")
    print(f"|---|---:|{'---:|' * len(machines)}---:|")
    for profile in PROFILES:
        for block in COSTS:
            row = [one for one in all_lines if (one.profile, one.block) == (profile, block)]
            cells = " | ".join(f"{one.planned:.2f}" for one in row)
            least = min(one.planned / one.best for one in row)
            print(f"| {profile} | {block} | {cells} | {least:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=400, help="of each answer (default: 400)")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    found = []
    for one in lines(arguments.seeds, arguments.requests, arguments.tokens):
        found.append(one)
        if not arguments.markdown:
            print(
                f"{one.profile:22}{one.block:>5}{one.machine:>14}{one.planned:>9.3f} planned"
                f"{one.best:>8.3f} best{one.planned / one.best:>7.3f} of best"
                f"{one.asked:>7.2f} asked",
                flush=True,
            )
    if arguments.markdown:
        show_markdown(found)


if __name__ == "__main__":
    main()
