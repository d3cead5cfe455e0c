"""Which rows are verified, compared with trying every choice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from specllama._core.plan import VerificationBatch

CURVES: dict[str, Callable[[int], float]] = {
    "flat": lambda n: 1.0 + 0.001 * n,
    "linear": lambda n: 0.2 + 0.8 * n,
    "in between": lambda n: 1.0 + 0.25 * (n - 1),
    "stairs": lambda n: 1.0 + (n - 1) // 4,
    "teeth": lambda n: 1.0 + 0.3 * n - 0.5 * (n % 4 == 0),
}
COMMITTED = -1


def survivals(rng: random.Random, longest: int) -> list[float]:
    """Return the probability that each token of a draft is accepted with all those before it."""
    rates = [rng.uniform(0.2, 1) for _ in range(rng.randrange(longest + 1))]
    return [float(p) for p in np.cumprod(rates)]


def add_chain(
    batch: VerificationBatch,
    gains: Sequence[float],
    *,
    n_rows: int = 1,
    draft_budget: float = 1e9,
    stream: int = 0,
) -> None:
    batch.add_sequence(n_rows, draft_budget, stream)
    row = COMMITTED
    for own in gains:
        row = batch.add_row(row, own, own)


def lengths(batch: VerificationBatch, n: int) -> list[int]:
    """Return the number of verified rows of each of n sequences."""
    return [sum(row.sequence == i for row in batch.chosen) for i in range(n)]


def gain(batch: VerificationBatch, sequence: int) -> float:
    return sum(row.gain for row in batch.chosen if row.sequence == sequence)


def select(chains: Sequence[Sequence[float]], curve: str) -> list[int]:
    batch = VerificationBatch()
    for gains in chains:
        add_chain(batch, gains)
    batch.select(CURVES[curve])
    return lengths(batch, len(chains))


@pytest.mark.parametrize("curve", sorted(CURVES))
@pytest.mark.parametrize("seed", range(8))
def test_selected_rows_save_the_most_time(curve: str, seed: int) -> None:
    rng = random.Random(seed)
    chains = [survivals(rng, 5) for _ in range(4)]
    pending = [rng.randrange(1, 4) for _ in chains]
    batch = VerificationBatch()
    for gains, n_rows in zip(chains, pending, strict=True):
        add_chain(batch, gains, n_rows=n_rows)
    batch.select(CURVES[curve])

    def saved(some: Sequence[int]) -> float:
        gained = sum(sum(gains[:n]) for gains, n in zip(chains, some, strict=True))
        return gained - CURVES[curve](sum(some) + sum(pending))

    everything = itertools.product(*(range(len(gains) + 1) for gains in chains))
    chosen = lengths(batch, len(chains))
    assert saved(chosen) == pytest.approx(max(map(saved, everything)))
    assert batch.seconds == pytest.approx(CURVES[curve](sum(chosen) + sum(pending)))
    for i, n in enumerate(chosen):
        own = [row for row in batch.chosen if row.sequence == i]
        assert [row.number for row in own] == [*range(n)]
        assert [row.tokens for row in own] == [row.gain for row in own] == chains[i][:n]


@pytest.mark.parametrize("curve", sorted(CURVES))
@pytest.mark.parametrize("seed", range(20))
def test_the_best_subtree_of_a_tree_is_selected(curve: str, seed: int) -> None:
    rng = random.Random(seed)
    parents: list[int] = []
    gains: list[float] = []
    for row in range(9):
        parent = rng.randrange(-1, row)
        parents.append(parent)
        gains.append(rng.uniform(0.1, 1) * (1.0 if parent < 0 else gains[parent]))
    batch = VerificationBatch()
    batch.add_sequence()
    for parent, own in zip(parents, gains, strict=True):
        batch.add_row(parent, own, own)
    batch.select(CURVES[curve])
    best = max(
        sum(gains[row] for row in rows) - CURVES[curve](1 + len(rows))
        for n in range(len(gains) + 1)
        for rows in itertools.combinations(range(len(gains)), n)
        if all(parents[row] in (COMMITTED, *rows) for row in rows)
    )
    assert gain(batch, 0) - batch.seconds == pytest.approx(best)


def test_the_value_of_a_row_is_at_most_that_of_the_one_before_it() -> None:
    batch = VerificationBatch()
    batch.add_sequence()
    first = batch.add_row(COMMITTED, 0.1, 0.1)
    batch.add_row(first, 1.0, 5.0)
    batch.select(CURVES["in between"])
    assert not batch.chosen


@pytest.mark.parametrize("slope", [0.05, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_selection_is_optimal_beyond_the_learned_widths(slope: float, seed: int) -> None:
    """Stairs up to 65 rows, then a straight line: as many of the best rows as save the most
    time."""
    rng = random.Random(seed)

    def seconds(n: int) -> float:
        return 1.0 + slope * (4 * ((min(n, 65) - 1) // 4) + max(n - 65, 0))

    chains = [[rng.uniform(0.9, 1.0) ** (i + 1) for i in range(40)] for _ in range(8)]
    chains = [sorted(gains, reverse=True) for gains in chains]
    batch = VerificationBatch()
    for gains in chains:
        add_chain(batch, gains)
    batch.select(seconds)
    gains = np.sort(np.concatenate(chains))[::-1]
    saved = np.append(0, np.cumsum(gains))
    saved -= [seconds(len(chains) + n) - seconds(len(chains)) for n in range(len(saved))]
    n = len(batch.chosen)
    assert saved[n] == pytest.approx(saved.max())
    assert sum(row.gain for row in batch.chosen) == pytest.approx(gains[:n].sum())


def test_draft_budgets_bound_the_extra_time_of_a_decode() -> None:
    for draft_budget, length in ((0.5, 2), (1.1, 4), (0.0, 0)):
        batch = VerificationBatch()
        add_chain(batch, [0.9] * 6, draft_budget=draft_budget)
        add_chain(batch, [], draft_budget=100)  # drafts nothing, so its budget is not used
        batch.select(CURVES["in between"])
        assert lengths(batch, 2) == [length, 0]


def test_selection_respects_the_limit_of_a_sequence() -> None:
    batch = VerificationBatch()
    batch.add_sequence(most=3)
    first = batch.add_row(COMMITTED, 0.9, 0.9)
    for own in (0.3, 0.8, 0.5):
        batch.add_row(first, own, own)
    batch.add_sequence()
    for own in (0.6, 0.4):
        batch.add_row(COMMITTED, own, own)
    batch.select(CURVES["flat"])
    assert lengths(batch, 2) == [3, 2]
    assert gain(batch, 0) == pytest.approx(0.9 + 0.8 + 0.5)


@pytest.mark.parametrize("seed", range(8))
def test_sequences_with_separate_memories_get_drafts_of_equal_length(seed: int) -> None:
    rng = random.Random(seed)
    chains = [survivals(rng, 5) for _ in range(6)]

    def seconds(n: int) -> float:
        return 1.0 + 0.1 * n

    places = sorted(rng.sample(range(8), len(chains)))

    def saved(g: int) -> float:
        drafted = [g if len(own) >= g else 0 for own in chains]
        at = dict(zip(places, drafted, strict=True))  # an unused slot has no length
        runs = itertools.groupby(range(8), key=at.get)
        widths = [len([*run]) * (1 + n) for n, run in runs if n is not None]
        gained = sum(sum(own[:n]) for own, n in zip(chains, drafted, strict=True))
        return gained - sum(map(seconds, widths))

    batch = VerificationBatch()
    for gains, place in zip(chains, places, strict=True):
        add_chain(batch, gains, stream=place)
    batch.select_per_stream(seconds)
    chosen = lengths(batch, len(chains))
    g = max(chosen)
    assert chosen == [g if len(own) >= g else 0 for own in chains]
    assert saved(g) == pytest.approx(max(map(saved, range(6))))


def test_drafts_become_shorter_with_more_sequences() -> None:
    draft = [0.8 ** (i + 1) for i in range(16)]

    def drafted(n: int) -> float:
        # The more sequences share a decode, the less their tokens gain.
        worth = CURVES["in between"](n) / n
        return sum(select([[worth * p for p in draft]] * n, "in between")) / n

    shares = [drafted(n) for n in (1, 2, 4, 8, 16)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 2 > shares[-1]
    assert sum(select([[0.9 * p for p in draft]] * 64, "linear")) == 0


def test_the_more_likely_draft_gets_more_rows() -> None:
    a, b = select([[1.0] * 8, [0.5 ** (i + 1) for i in range(8)]], "in between")
    assert a == 8
    assert b < 4
