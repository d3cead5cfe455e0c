"""Several candidates at a position in specllama.theory, compared with brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from specllama import ArgumentError, theory

Floats = Any


def random_edges(seed: int, n_depths: int, n_ranks: int) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_ranks + 1, 0.7), n_depths)[:, :n_ranks]


def distributions(seed: int, n: int, near: float) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, n)
    p, q = (np.exp(x) for x in (logits, near * logits + (1 - near) * rng.normal(0, 2, n)))
    return p / p.sum(), q / q.sum()


def subtrees(n_depths: int, n_ranks: int, size: int) -> Any:
    """Yield every set of `size` nodes (paths of ranks) that includes each node's parent."""
    nodes = [
        path
        for depth in range(1, n_depths + 1)
        for path in itertools.product(range(n_ranks), repeat=depth)
    ]
    for chosen in itertools.combinations(nodes, size):
        known = {(), *chosen}
        if all(path[:-1] in known for path in chosen):
            yield chosen


@pytest.mark.parametrize("seed", range(4))
def test_the_best_tree_equals_brute_force(seed: int) -> None:
    edges = random_edges(seed, 3, 2)
    best = theory.best_tree(edges, 6)
    for size in range(7):
        most = max(
            1 + sum(np.prod([edges[d, rank] for d, rank in enumerate(path)]) for path in tree)
            for tree in subtrees(3, 2, size)
        )
        assert best.expected_tokens[size] == pytest.approx(most)


def test_expected_tokens_is_the_mean_of_rounds() -> None:
    edges = random_edges(1, 3, 3)
    best = theory.best_tree(edges, 12)
    rng = np.random.default_rng(2)
    rates = [
        edges[depth, rank] for depth, rank in zip(depths(best.parents), best.ranks, strict=True)
    ]
    expected = theory.tree_expected_tokens(best.parents, rates)
    assert expected == pytest.approx(best.expected_tokens[-1])
    counts = []
    for _ in range(20_000):
        # The right candidate at each depth; all nodes of a depth have the same edges.
        right = [rng.choice(4, p=[*row, 1 - row.sum()]) for row in edges]
        node, n = -1, 1
        for depth in range(3):
            children = [
                i
                for i, parent in enumerate(best.parents)
                if parent == node and best.ranks[i] == right[depth]
            ]
            if not children:
                break
            node, n = children[0], n + 1
        counts.append(n)
    assert abs(np.mean(counts) - expected) < 5 * np.std(counts) / np.sqrt(len(counts))


def depths(parents: list[int]) -> list[int]:
    found: list[int] = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0])
def test_a_tree_without_branches_equals_a_chain(alpha: float) -> None:
    chain = list(range(-1, 6))
    tokens = theory.tree_expected_tokens(chain, np.full(7, alpha))
    assert tokens == pytest.approx(theory.expected_tokens(alpha, 7))
    best = theory.best_tree(np.full((7, 1), alpha), 7)
    assert best.parents == chain
    v = np.linspace(1, 2, 8)
    assert best.speeds(v, 0.1) == pytest.approx(theory.speeds(np.full(7, alpha), v, 0.1))


def test_branches_pay_only_if_width_is_cheap() -> None:
    """The draft model's first choice is right in half of the cases, its second in a quarter."""
    edges = np.tile([0.5, 0.25, 0.1], (16, 1))
    comb = theory.best_tree(edges, 24)
    chain = theory.best_tree(edges[:, :1], 16)
    for slope, gains in ((0.01, True), (0.3, False)):
        v = 1 + slope * np.arange(30)
        best = [max(tree.speeds(v, 0.15)) for tree in (comb, chain)]
        assert (best[0] > 1.1 * best[1]) == gains
        assert best[0] >= best[1] - 1e-12


@pytest.mark.parametrize("near", [0.0, 0.7, 0.95])
def test_acceptance_of_one_candidate_equals_the_simple_formula(near: float) -> None:
    p, q = distributions(1, 20, near)
    assert theory.acceptance_of_several(p, q, 1) == pytest.approx(theory.acceptance(p, q))
    assert theory.coupled_acceptance_of_several(p, q, 1) == pytest.approx(
        theory.coupled_acceptance(p, q), abs=1e-6
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("near", [0.0, 0.9])
def test_acceptance_of_several_candidates_matches_simulation(near: float, k: int) -> None:
    p, q = distributions(2, 8, near)
    rng = np.random.default_rng(k)
    n = 40_000
    noise = rng.gumbel(size=(n, 8))
    target = np.argmax(np.log(p) + noise, axis=1)
    candidates = np.argsort(-(np.log(q) + noise), axis=1)[:, :k]
    seen = (candidates == target[:, None]).any(axis=1).mean()
    expected = theory.coupled_acceptance_of_several(p, q, k)
    assert abs(seen - expected) < 5 * np.sqrt(0.25 / n)

    drawn = np.argsort(-(np.log(q) + rng.gumbel(size=(4000, 8))), axis=1)[:, :k]
    kept = np.mean([is_accepted(rng, p, q, row) for row in drawn])
    assert abs(kept - theory.acceptance_of_several(p, q, k)) < 5 * np.sqrt(0.25 / 4000)


def is_accepted(rng: np.random.Generator, p: Floats, q: Floats, candidates: Floats) -> bool:
    for token in candidates:
        if rng.random() < p[token] / q[token]:
            return True
        p = np.maximum(p - q, 0)
        q = np.where(np.arange(len(q)) == token, 0, q)
        if p.sum() == 0 or q.sum() == 0:
            return False
        p, q = p / p.sum(), q / q.sum()
    return False


def test_acceptance_of_several_candidates_grows_and_reaches_its_limits() -> None:
    p, q = distributions(3, 12, 0.5)
    several = [theory.acceptance_of_several(p, q, k) for k in (1, 2, 3)]
    coupled = [theory.coupled_acceptance_of_several(p, q, k) for k in (1, 2, 3)]
    assert several == sorted(several)
    assert coupled == sorted(coupled)
    for of in (theory.acceptance_of_several, theory.coupled_acceptance_of_several):
        assert of(p, p, 2) == pytest.approx(1, abs=1e-6)
        assert of([0.5, 0.5, 0.0], [0.0, 0.0, 1.0], 3) == pytest.approx(0)
        assert of([[0.5, 0.5], [1.0, 0.0]], [[0.1, 0.9], [0.3, 0.7]], 2) == pytest.approx(
            1, abs=1e-6
        )


ANY: list[Any] = [None, [0.5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.tree_expected_tokens([-1, 1], [0.5, 0.5]), "parent of node 1"),
        (lambda: theory.tree_expected_tokens([-1], [0.5, 0.5]), "one number for each"),
        (
            lambda: theory.tree_expected_tokens([-1, -1], [0.6, 0.5]),
            "sum to at most 1|sum at most 1",
        ),
        (lambda: theory.best_tree([[0.6, 0.5]], 1), "sum to at most 1|sum at most 1"),
        (lambda: theory.best_tree([0.6], 1), "shape"),
        (lambda: theory.tree_expected_tokens(ANY[0], [0.6]), "parents must be whole numbers"),
        (lambda: theory.tree_expected_tokens(ANY[1], [0.6]), "must be a whole number"),
        (lambda: theory.best_tree([[0.6]], 2), "n_nodes must be at most 1"),
        (lambda: theory.acceptance_of_several([1.0], [1.0], 0), "k must be"),
        (lambda: theory.coupled_acceptance_of_several([1.0], [1.0], 9), "k must be"),
        (lambda: theory.best_tree([[0.6]], 1).speeds([1.0]), "v must have 2 times"),
        (lambda: theory.best_tree([[0.6]], 1).speeds([0.0, 1.0]), "A round must take time: v, "),
    ],
)
def test_bad_arguments_of_trees_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_tree_edges_may_sum_to_a_rounded_1() -> None:
    edges = [0.2, 0.4, 0.3, 0.1]
    assert sum(edges) > 1
    assert theory.tree_expected_tokens([-1] * 4, edges) == pytest.approx(2)
