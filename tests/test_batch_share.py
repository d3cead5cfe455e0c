"""How several sequences' drafts share a decode, against trying everything."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest
from specllama._core import Share, share_batch

CURVES: dict[str, Callable[[int], float]] = {
    "flat": lambda n: 1.0 + 0.001 * n,
    "linear": lambda n: 0.2 + 0.8 * n,
    "in between": lambda n: 1.0 + 0.25 * (n - 1),
    "stairs": lambda n: 1.0 + (n - 1) // 4,
}


def survivals(rng: random.Random, longest: int) -> list[float]:
    """Tokens to expect with 0, 1, ... of a draft's tokens."""
    rates = [rng.uniform(0.2, 1) for _ in range(rng.randrange(longest + 1))]
    return [1.0, *(1 + np.cumsum(np.cumprod(rates))).tolist()]


def speed(tokens: list[list[float]], lengths: tuple[int, ...], seconds: float) -> float:
    return sum(own[n] for own, n in zip(tokens, lengths, strict=True)) / seconds


@pytest.mark.parametrize("curve", sorted(CURVES))
@pytest.mark.parametrize("seed", range(8))
def test_no_other_share_is_faster(curve: str, seed: int) -> None:
    rng = random.Random(seed)
    tokens = [survivals(rng, 5) for _ in range(4)]
    pending = [rng.randrange(1, 4) for _ in tokens]
    spent = rng.choice([0.0, 0.5])

    def of(lengths: tuple[int, ...]) -> float:
        n = sum(lengths) + sum(pending)
        return speed(tokens, lengths, spent + CURVES[curve](n))

    best = max(map(of, itertools.product(*(range(len(own)) for own in tokens))))
    shares = [Share(own, n_pending=n) for own, n in zip(tokens, pending, strict=True)]
    found = share_batch(shares, CURVES[curve], spent=spent)
    assert of(tuple(found)) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(8))
def test_decoded_alike_those_that_draft_draft_as_much(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [survivals(rng, 5) for _ in range(6)]

    def seconds(n: int) -> float:
        return 1.0 + 0.1 * n

    places = sorted(rng.sample(range(8), len(tokens)))

    def of(g: int) -> float:
        lengths = [g if len(own) > g else 0 for own in tokens]
        at = dict(zip(places, lengths, strict=True))  # a free place has no length
        runs = itertools.groupby(range(8), key=at.get)
        widths = [len([*run]) * (1 + n) for n, run in runs if n is not None]
        return speed(tokens, tuple(lengths), sum(map(seconds, widths)))

    shares = [Share(own, place=place) for own, place in zip(tokens, places, strict=True)]
    found = share_batch(shares, seconds, alike=True)
    g = max(found)
    assert found == [g if len(own) > g else 0 for own in tokens]
    assert of(g) == pytest.approx(max(map(of, range(6))))


def test_drafts_shrink_under_load() -> None:
    draft = (1 + np.cumsum([0, *(0.8 ** np.arange(1, 17))])).tolist()

    def drafted(n: int) -> float:
        return sum(share_batch([Share(draft)] * n, CURVES["in between"])) / n

    lengths = [drafted(n) for n in (1, 2, 4, 8, 16)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 2 > lengths[-1]
    assert sum(share_batch([Share(draft)] * 64, CURVES["linear"])) == 0


def test_the_likelier_draft_gets_more() -> None:
    sure = (1 + np.arange(9.0)).tolist()
    vague = (1 + np.cumsum([0, *(0.5 ** np.arange(1, 9))])).tolist()
    a, b = share_batch([Share(sure), Share(vague)], CURVES["in between"])
    assert a == 8
    assert b < 4


def test_a_draft_that_must_be_verified() -> None:
    poor = [1.0, 1.01, 1.01]
    assert share_batch([Share(poor, all=True), Share(poor)], CURVES["linear"]) == [2, 0]
    both = [Share(poor, all=True), Share(poor, place=1)]
    alike = share_batch(both, CURVES["linear"], alike=True)
    assert alike == [2, 0]
