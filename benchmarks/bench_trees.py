"""Acceptance of several guesses at a position, and the gain of trees.

    python benchmarks/bench_trees.py arithmetic
    python benchmarks/bench_trees.py planned
    python benchmarks/bench_trees.py matches
    python benchmarks/bench_trees.py union
    python benchmarks/bench_trees.py acceptance [-m target.gguf -md draft.gguf]
    python benchmarks/bench_trees.py speed [-m target.gguf -md draft.gguf]

Computed:

    arithmetic  the speed of the best tree over that of the best chain, from the costs of decodes of
                n tokens; without the cost of decoding a side branch's tokens again
    planned     the planner's gain from a draft model's second and third guesses (random, with the
                same acceptance rates), with that cost
    matches     the same for the n-gram drafter's guesses on real answers; also the tokens per round
                of a fixed length
    union       the same for n-grams and a draft model together

Measured:

    acceptance  the acceptance rate of one position with k guesses, and the rate that the formulas
                give for the two models' distributions at the same positions
    speed       sessions that differ only in spec_tree, in turns: the median over prompts of the
                ratio to chains
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from answers import Answer, answers
from specllama import SpecSession, theory
from specllama._core import Source
from specllama._core.plan import Evidence
from specllama.measure.logits import LogitsModel, probabilities
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.simulate import MAX_DRAFT, calibrated_planner, read_curves
from tree_rounds import Guess, Script, drawn_script, fixed_rounds, n_gram_trees, planned_time

CURVES = Path(__file__).parents[1] / "tests" / "data" / "curves.json"

PROMPTS = [
    "def fibonacci(n):\n    a, b = 0, 1\n",
    "import os\nimport sys\nimport re\nfrom collections import",
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(",
    "import unittest\n\nclass TestParser(unittest.TestCase):\n\n    def test_",
    "def read_config(path):\n    with open(path) as file:\n",
    "class Server:\n    def __init__(self, host, port):\n",
]
TOP_K = 20  # small, because the formulas sum over every order of guesses
PLACES = 24  # positions of each text, for the formulas
GUESSES = (1, 2, 3, 4)
# Rates at which the first, second and third guess are right.
EDGES = ((0.5, 0.25, 0.1), (0.65, 0.17, 0.06), (0.8, 0.1, 0.03))
STEPS = (0.1, 0.3)  # time of the draft model's step, in plain decodes
SESSIONS = 6  # several, because it depends on chance where drafts hardly pay
TEXTS = 20


def arithmetic() -> None:
    curves = json.loads(CURVES.read_text())
    cases = [(edges, step) for edges in EDGES for step in STEPS]
    print(f"{'':12}  v(8)", *(f"  {edges[0]} d={step}" for edges, step in cases))
    for name, points in curves.items():
        if name == "about":
            continue
        times = theory.DecodeTimes.through({int(n): t for n, t in points.items()}, 65)
        gains = []
        for edges, step in cases:
            levels = np.tile(edges, (16, 1))
            tree, chain = theory.best_tree(levels, 40), theory.best_tree(levels[:, :1], 16)
            best = [max(one.speeds(times.ratios, step)) for one in (tree, chain)]
            gains.append(best[0] / best[1])
        print(f"{name:12} {times.ratios[7]:5.2f}", *(f"{gain:11.3f}" for gain in gains))


def gains(times: dict[int, list[float]]) -> str:
    """Return the speed of two and three guesses over that of chains, as text."""
    shown = []
    for guesses in (2, 3):
        log = np.log(np.array(times[1]) / np.array(times[guesses]))
        shown.append(f"{guesses}: {np.exp(log.mean()):.3f} ({np.exp(np.percentile(log, 5)):.3f})")
    return "  ".join(shown)


def matches() -> None:
    texts = [*answers()]
    n_tokens = sum(len(one.tokens) for one in texts)
    print(f"{len(texts)} answers, {n_tokens} tokens; tokens per round")
    for longest in (4, 8):
        per_round = []
        for guesses in (1, 2, 3):
            scripts = [script_of(one, guesses, longest) for one in texts]
            rounds = sum(fixed_rounds(one, longest * guesses) for one in scripts)
            per_round.append(f"{guesses}: {n_tokens / rounds:.3f}")
        print(f"  spec_length {longest}, spec_tree", ", ".join(per_round))
    print("planned: speed over that of chains (of answers the geometric mean, the 5th percentile)")
    everything = {
        guesses: [script_of(one, guesses, MAX_DRAFT) for one in texts] for guesses in (1, 2, 3)
    }
    for name, curve in read_curves(CURVES).items():
        times = {}
        for guesses, scripts in everything.items():
            planner = calibrated_planner(curve)
            times[guesses] = [planned_time(one, planner, curve, guesses) for one in scripts]
        print(f"{name:12} {curve[7]:5.2f}  {gains(times)}", flush=True)


def script_of(one: Answer, guesses: int, longest: int) -> Script:
    return Script(
        len(one.prompt), one.tokens, n_gram_trees(one.prompt, one.tokens, guesses, longest)
    )


def planned(n_tokens: int) -> None:
    print(
        f"speed over that of chains, of {SESSIONS} sessions of {TEXTS} texts the geometric mean "
        "(5th percentile)"
    )
    for name, curve in read_curves(CURVES).items():
        for edges in EDGES:
            for step in STEPS:
                times: dict[int, list[float]] = {}
                for guesses in (1, 2, 3):
                    times[guesses] = []
                    for seed in range(SESSIONS):
                        rng = np.random.default_rng(seed)
                        planner = calibrated_planner(curve)
                        for _ in range(TEXTS):
                            one = drawn_script(n_tokens, edges, step, rng)
                            times[guesses].append(planned_time(one, planner, curve, guesses))
                print(f"{name:12} {curve[7]:5.2f}  {edges[0]} d={step}  {gains(times)}", flush=True)


def union() -> None:
    texts = [one for one in answers() if one.draft]
    everything = {
        guesses: [script_of(one, guesses, MAX_DRAFT) for one in texts] for guesses in (1, 2, 3)
    }
    for scripts in everything.values():
        for one, script in zip(texts, scripts, strict=True):
            script.model = [
                [Guess(token, Evidence(Source.model, 0, sure))]
                for token, sure in zip(one.draft, one.sure, strict=True)
            ]
    print(
        f"speed over that of chains, of {len(texts)} answers, {SESSIONS} orders, geometric mean "
        "(5th percentile)"
    )
    for name, curve in read_curves(CURVES).items():
        for step in STEPS:
            times: dict[int, list[float]] = {}
            for guesses, scripts in everything.items():
                times[guesses] = []
                for seed in range(SESSIONS):
                    planner = calibrated_planner(curve)
                    for at in np.random.default_rng(seed).permutation(len(scripts)):
                        one = replace(scripts[at], step=step)
                        times[guesses].append(planned_time(one, planner, curve, guesses))
            print(f"{name:12} {curve[7]:5.2f}  d={step}  {gains(times)}", flush=True)


def acceptance(model: Path, draft_model: Path, n_tokens: int) -> None:
    target, draft = (LogitsModel(path, n_ctx=512) for path in (model, draft_model))
    print(f"{'rule':>10} {'T':>4} {'k':>2} {'accepted':>9} {'formula':>8}")
    for rule, formula in (
        ("coupled", theory.coupled_acceptance_of_several),
        ("rejection", theory.acceptance_of_several),
    ):
        for temperature in (0.0, 0.7, 1.0):
            chosen: Any = {"temperature": temperature, "top_k": TOP_K, "acceptance": rule}
            for k in GUESSES:
                accepted = rounds = 0
                texts = []
                with SpecSession(
                    model, draft_model, cascade=False, spec_length=1, spec_tree=k, n_gpu_layers=0
                ) as session:
                    for seed, prompt in enumerate(PROMPTS):
                        done = session.generate(prompt, max_tokens=n_tokens, seed=seed, **chosen)
                        places, at = [], 0
                        for n_drafted, right in done.stats.by_round:
                            if n_drafted > 0:
                                places.append(at)
                                accepted += right
                            at += right + 1
                        rounds += len(places)
                        # The end token is verified, too, but is not among `tokens`.
                        inside = [place for place in places if place < len(done.tokens)]
                        texts.append((session.tokenize(prompt), done.tokens, inside))
                rate = accepted / rounds
                shown = ""
                # At T = 0 a draft model's second guesses follow its logits, which q does not show.
                # Four guesses by rejection have too many orders.
                if k == 1 or (temperature > 0 and not (rule == "rejection" and k == 4)):
                    expected = np.mean([
                        formula(*pair, k)
                        for text in texts
                        for pair in distributions(target, draft, *text, temperature)
                    ])  # fmt: skip
                    shown = f"{expected:8.3f}"
                print(f"{rule:>10} {temperature:>4} {k:>2} {rate:9.3f} {shown}", flush=True)


def distributions(
    target: LogitsModel,
    draft: LogitsModel,
    prompt: list[int],
    tokens: list[int],
    places: list[int],
    temperature: float,
) -> list[tuple[Any, Any]]:
    """Return p and q at some of the drafted positions, without the tokens that neither allows."""
    pairs = []
    rows = [model.rows([*prompt, *tokens], len(prompt)).copy() for model in (target, draft)]
    for place in places[:: max(len(places) // PLACES, 1)]:
        logits = [row[place] for row in rows]
        cut = [np.where(row >= np.sort(row)[-TOP_K], row, -np.inf)[None] for row in logits]
        p, q = (probabilities(row, temperature)[0] for row in cut)
        kept = (p > 0) | (q > 0)
        pairs.append((p[kept], q[kept]))
    return pairs


def speed(model: Path | None, draft: Path, n_tokens: int, trees: list[str]) -> None:
    chosen: dict[str, Any] = {"max_tokens": n_tokens, "temperature": 0.0, "seed": 1}
    for temperature in (0.0, 1.0):
        chosen["temperature"] = temperature
        sessions = {
            tree: SpecSession(model, draft, spec_tree=int(tree) if tree.isdecimal() else tree)  # type: ignore[arg-type]
            for tree in trees
        }
        ratios: dict[str, list[float]] = {tree: [] for tree in trees}
        per_round: dict[str, list[float]] = {tree: [] for tree in trees}
        aside = dict.fromkeys(trees, 0)
        for session in sessions.values():
            session.generate(PROMPTS[0], **chosen)
        for number, prompt in enumerate(PROMPTS):
            speeds = {}
            for tree in trees if number % 2 else trees[::-1]:
                stats = sessions[tree].generate(prompt, **chosen).stats
                speeds[tree] = stats.tokens_per_second
                per_round[tree].append(stats.tokens_per_round)
                aside[tree] += sum(stats.accepted_by_rank[1:])
            for tree in trees:
                ratios[tree].append(speeds[tree] / speeds[trees[0]])
        for tree, session in sessions.items():
            session.close()
            print(
                f"T = {temperature}  spec_tree {tree:>5}: {statistics.median(ratios[tree]):.3f} "
                f"({min(ratios[tree]):.3f} to {max(ratios[tree]):.3f}) of chains, "
                f"{statistics.mean(per_round[tree]):.2f} tokens per round, "
                f"{aside[tree]} accepted in side branches",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=("arithmetic", "planned", "matches", "union", "acceptance", "speed")
    )
    parser.add_argument("-m", "--model", type=Path)
    parser.add_argument("-md", "--draft-model", type=Path, default=BUNDLED_DRAFT)
    parser.add_argument("-n", "--n-predict", type=int, default=160)
    parser.add_argument("--trees", nargs="+", default=["off", "auto", "2", "3"])
    arguments = parser.parse_args()
    if arguments.what == "arithmetic":
        arithmetic()
    elif arguments.what == "planned":
        planned(arguments.n_predict)
    elif arguments.what == "matches":
        matches()
    elif arguments.what == "union":
        union()
    elif arguments.what == "acceptance":
        acceptance(arguments.model or BUNDLED_MODEL, arguments.draft_model, arguments.n_predict)
    else:
        speed(arguments.model, arguments.draft_model, arguments.n_predict, arguments.trees)


if __name__ == "__main__":
    main()
