"""What several guesses at a position are accepted with, and what trees gain by the clock.

    python tests/benches/bench_trees.py arithmetic
    python tests/benches/bench_trees.py matches
    python tests/benches/bench_trees.py acceptance [-m target.gguf -md draft.gguf]
    python tests/benches/bench_trees.py speed [-m target.gguf -md draft.gguf]

`arithmetic`: the speed of the best tree over that of the best chain, by what decodes of n tokens
cost; what a side branch's tokens cost when they come again is left out. `matches`: by arithmetic,
too, what the n-gram drafter's second guesses add on real answers, in tokens per round of a fixed
length and in speed where the planner decides; here that cost is counted. `acceptance`: of one token
drafted with k guesses, beside what theory makes of the two models' distributions at the same
places. `speed`: sessions that differ in spec_tree alone, in turns; the median of the ratios to
chains, prompt by prompt.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from answers import answers
from specllama import SpecSession, theory
from specllama._core.plan import Evidence, NGramFollower, Planner, Turn
from specllama.measure.logits import LogitsModel, probabilities
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.simulate import MAX_DRAFT, Curve, calibrated_planner, read_curves

PROMPTS = [
    "def fibonacci(n):\n    a, b = 0, 1\n",
    "import os\nimport sys\nimport re\nfrom collections import",
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(",
    "import unittest\n\nclass TestParser(unittest.TestCase):\n\n    def test_",
    "def read_config(path):\n    with open(path) as file:\n",
    "class Server:\n    def __init__(self, host, port):\n",
]
TOP_K = 20  # the formulas look at every order of guesses
PLACES = 24  # of each text, for the formulas
GUESSES = (1, 2, 3, 4)
# How often the first, second and third guess are right.
EDGES = ((0.5, 0.25, 0.1), (0.65, 0.17, 0.06), (0.8, 0.1, 0.03))


def arithmetic() -> None:
    curves = json.loads((Path(__file__).parents[1] / "data" / "curves.json").read_text())
    cases = [(edges, step) for edges in EDGES for step in (0.1, 0.3)]
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


@dataclass
class Trees:
    """What the n-gram drafter proposes at every position of an answer: a trunk, and behind it what
    may come in its tokens' place."""

    n_prompt: int
    text: list[int]
    nodes: list[list[tuple[int, Evidence, int]]]  # a token, what is known of it, its parent
    n_trunk: list[int]


def trees_of(prompt: list[int], text: list[int], n_guesses: int, longest: int) -> Trees:
    follower = NGramFollower()
    follower.append_batch(prompt)
    trees = Trees(len(prompt), text, [], [])
    for i, token in enumerate(text):
        room = min(longest, len(text) - 1 - i) if i > 0 else 0
        nodes = follower.tree(room, n_guesses - 1)
        trees.nodes.append(nodes)
        chain = [parent == at - 1 for at, (_, _, parent) in enumerate(nodes)]
        trees.n_trunk.append(chain.index(False) if False in chain else len(chain))
        follower.append(token)
    return trees


def walk(trees: Trees, i: int, rows: set[int]) -> list[int]:
    """The rows that are right, each the child of the one before."""
    path: list[int] = []
    for token in trees.text[i:]:
        last = path[-1] if path else -1
        right = [
            at
            for at, (guess, _, parent) in enumerate(trees.nodes[i])
            if parent == last and guess == token and at in rows
        ]
        if not right:
            break
        path += right
    return path


def in_trunk(path: list[int]) -> int:
    return sum(at == number for number, at in enumerate(path))


def hear(turn: Turn, trees: Trees, i: int, n_heard: int) -> int:
    """Say what the target was heard to say of the guesses; how many of the trunk are right."""
    nodes, n_trunk = trees.nodes[i], trees.n_trunk[i]
    last, path = -1, []
    for token in trees.text[i : i + n_heard]:
        children = [at for at, (_, _, parent) in enumerate(nodes) if parent == last]
        right = next((at for at in children if nodes[at][0] == token), None)
        for at in children if right is None else children[: children.index(right) + 1]:
            if at >= n_trunk:
                turn.hear(0, at - n_trunk, at == right)
        if right is None:
            break
        last = right
        path.append(right)
    return in_trunk(path)


def planned(trees: Trees, planner: Planner, curve: Curve) -> float:
    """What rounds take in which the planner decides, in plain decodes."""
    phase = planner.begin(0.0, trees.n_prompt)
    time, i, again = 0.0, 0, 0
    while i < len(trees.text):
        nodes, n_trunk = trees.nodes[i], trees.n_trunk[i]
        position = trees.n_prompt + i
        turn = Turn(phase, position, n_pending=1 + again, max_rows=MAX_DRAFT - again)
        turn.offer(
            [known for _, known, _ in nodes[:n_trunk]],
            sides=[(known, parent) for _, known, parent in nodes[n_trunk:]],
        )
        planner.choose([turn])
        path = walk(trees, i, set(turn.rows))
        n_rows = planner.width(1 + again + turn.choice.n_draft, position)
        planner.observe_decode(n_rows, position, float(curve[n_rows - 1]) * 0.05)
        turn.came(len(path), [hear(turn, trees, i, len(path) + 1)])
        planner.learn(turn)
        time += float(curve[n_rows - 1])
        i += len(path) + 1
        again = len(path) - in_trunk(path)
    return time


def fixed_rounds(trees: Trees, most: int) -> int:
    rounds = i = 0
    while i < len(trees.text):
        i += len(walk(trees, i, set(range(min(most, len(trees.nodes[i])))))) + 1
        rounds += 1
    return rounds


def matches() -> None:
    texts = [*answers()]
    n_tokens = sum(len(one.tokens) for one in texts)
    print(f"{len(texts)} answers, {n_tokens} tokens; tokens per round")
    for longest in (4, 8):
        per_round = []
        for guesses in (1, 2, 3):
            trees = [trees_of(one.prompt, one.tokens, guesses, longest) for one in texts]
            rounds = sum(fixed_rounds(one, longest * guesses) for one in trees)
            per_round.append(f"{guesses}: {n_tokens / rounds:.3f}")
        print(f"  spec_length {longest}, spec_tree", ", ".join(per_round))
    print("planned: speed over that of chains (of answers the geometric mean, the 5th percentile)")
    curves = read_curves(Path(__file__).parents[1] / "data" / "curves.json")
    everything = {
        guesses: [trees_of(one.prompt, one.tokens, guesses, MAX_DRAFT) for one in texts]
        for guesses in (1, 2, 3)
    }
    for name, curve in curves.items():
        times = {}
        for guesses, trees in everything.items():
            planner = calibrated_planner(curve)
            times[guesses] = np.array([planned(one, planner, curve) for one in trees])
        gains = []
        for guesses in (2, 3):
            log = np.log(times[1] / times[guesses])
            gains.append(f"{np.exp(log.mean()):.3f} ({np.exp(np.percentile(log, 5)):.3f})")
        print(f"{name:12} {curve[7]:5.2f}  2: {gains[0]}  3: {gains[1]}", flush=True)


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
                        # An end is judged, too, but is none of the tokens.
                        inside = [place for place in places if place < len(done.tokens)]
                        texts.append((session.tokenize(prompt), done.tokens, inside))
                expected = np.mean([
                    formula(*pair, min(k, 3 if rule == "rejection" else k))
                    for text in texts
                    for pair in distributions(target, draft, *text, temperature)
                ])  # fmt: skip
                # Second guesses of a draft model at T = 0 go by its logits, which q tells no more.
                unknown = k > (3 if rule == "rejection" else 4) or (temperature == 0 and k > 1)
                shown = "" if unknown else f"{expected:8.3f}"
                rate = accepted / rounds
                print(f"{rule:>10} {temperature:>4} {k:>2} {rate:9.3f} {shown}", flush=True)


def distributions(
    target: LogitsModel,
    draft: LogitsModel,
    prompt: list[int],
    tokens: list[int],
    places: list[int],
    temperature: float,
) -> list[tuple[Any, Any]]:
    """p and q at some of the generated tokens for which there was a draft, without the tokens that
    have neither."""
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
    parser.add_argument("what", choices=("arithmetic", "matches", "acceptance", "speed"))
    parser.add_argument("-m", "--model", type=Path)
    parser.add_argument("-md", "--draft-model", type=Path, default=BUNDLED_DRAFT)
    parser.add_argument("-n", "--n-predict", type=int, default=160)
    parser.add_argument("--trees", nargs="+", default=["off", "auto", "2", "3"])
    arguments = parser.parse_args()
    if arguments.what == "arithmetic":
        arithmetic()
    elif arguments.what == "matches":
        matches()
    elif arguments.what == "acceptance":
        acceptance(arguments.model or BUNDLED_MODEL, arguments.draft_model, arguments.n_predict)
    else:
        speed(arguments.model, arguments.draft_model, arguments.n_predict, arguments.trees)


if __name__ == "__main__":
    main()
