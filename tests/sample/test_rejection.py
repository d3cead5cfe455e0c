"""Rejection sampling: tokens follow the target's distribution with every drafter."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_sampler import OFF, Row, chi_square, follows, kept_probabilities, sampler
from specllama import theory

Probabilities = NDArray[np.float64]
N_DRAWS = 200_000
REJECTION: dict[str, Any] = {"temperature": 1.0, "acceptance": "rejection"}


def row(seed: int, scale: float = 2.0, n: int = 30) -> Row:
    return np.random.default_rng(seed).normal(0, scale, n).astype(np.float32)


def without(logits: Row, tokens: range) -> Row:
    out = logits.copy()
    out[tokens] = -np.inf
    return out


PAIRS: dict[str, tuple[Row, Row]] = {
    "alike": (row(1), row(1) + row(2, 0.5)),
    "equal": (row(1), row(1)),
    "unlike": (row(1), row(2)),
    "mismatched supports": (without(row(1), range(10)), without(row(2), range(8, 16))),
    "disjoint": (without(row(1), range(15)), without(row(2), range(15, 30))),
    "sure of something else": (row(1), row(3, 12.0)),
}
CUTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6, "top_k": 7},
    {"temperature": 1.5, "top_p": 0.8},
    {"min_p": 0.05, "logit_bias": [(3, 1.5), (4, -math.inf)]},
]


def speculate(
    pair: str, n: int = N_DRAWS, *, first: int = 1, point_mass: bool = False, **options: Any
) -> tuple[NDArray[np.int32], Probabilities, Probabilities]:
    """Return drafted and resulting tokens [n, 2], p and q."""
    target, draft = PAIRS[pair]
    options = REJECTION | options
    both = sampler(len(target), **options).speculate_many(target, draft, first, n, point_mass)
    p, q = (kept_probabilities(logits, [], OFF | options) for logits in (target, draft))
    return both, p, q


@pytest.mark.parametrize("options", CUTS)
@pytest.mark.parametrize("pair", PAIRS)
def test_rejection_sampling_follows_the_target_distribution(
    pair: str, options: dict[str, Any]
) -> None:
    both, p, q = speculate(pair, **options)
    assert follows(both[:, 0], q)
    assert follows(both[:, 1], p)
    # The acceptance rate is sum min(p, q), up to 4 standard errors.
    rate, expected = (both[:, 0] == both[:, 1]).mean(), np.minimum(p, q).sum()
    assert abs(rate - expected) <= 4 * math.sqrt(expected * (1 - expected) / len(both)) + 1e-9


@pytest.mark.parametrize("pair", ["alike", "unlike", "disjoint"])
def test_rejection_of_point_mass_drafts_follows_the_target_distribution(pair: str) -> None:
    both, p, q = speculate(pair, point_mass=True)
    assert follows(both[:, 1], p)
    rate, expected = (both[:, 0] == both[:, 1]).mean(), (p * q).sum()
    assert abs(rate - expected) <= 4 * math.sqrt(expected * (1 - expected) / len(both)) + 1e-9


@pytest.mark.parametrize("options", [CUTS[0], CUTS[1], {"top_k": 2}])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("pair", PAIRS)
def test_rejection_of_several_candidates_follows_the_target_distribution(
    pair: str, k: int, options: dict[str, Any]
) -> None:
    """Candidates are drawn without replacement. Some cases have fewer tokens, or no token in
    common."""
    options = REJECTION | options
    target, draft = PAIRS[pair]
    all_of = sampler(len(target), **options).speculate_many(
        target, draft, 1, N_DRAWS // 2, n_guesses=k
    )
    candidates, chosen = all_of[:, :-1], all_of[:, -1]
    p, q = (kept_probabilities(logits, [], OFF | options) for logits in (target, draft))
    assert follows(chosen, p)
    assert follows(candidates[:, 0], q)
    n_left = min(k, np.count_nonzero(q))
    assert ((candidates >= 0).sum(axis=1) == n_left).all()
    for i, j in itertools.combinations(range(n_left), 2):
        assert (candidates[:, i] != candidates[:, j]).all()
    if k == 4 and len(options) == len(REJECTION):
        return  # the formula would go through every order
    rate = (candidates == chosen[:, None]).any(axis=1).mean()
    kept = (p > 0) | (q > 0)
    expected = float(theory.acceptance_of_several(p[kept], q[kept], k))
    assert abs(rate - expected) <= 4 * math.sqrt(max(expected * (1 - expected), 1e-9) / len(chosen))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("pair", PAIRS)
def test_coupled_candidates_change_no_choice(pair: str, k: int) -> None:
    target, draft = PAIRS[pair]
    one = sampler(len(target), temperature=1.0, top_k=9)
    all_of = one.speculate_many(target, draft, 1, N_DRAWS // 4, n_guesses=k)
    assert (all_of[:, -1] == one.choose_many(target, 1, N_DRAWS // 4)).all()
    p, q = (
        kept_probabilities(x, [], OFF | {"temperature": 1.0, "top_k": 9}) for x in (target, draft)
    )
    rate = (all_of[:, :-1] == all_of[:, -1:]).any(axis=1).mean()
    expected = float(theory.coupled_acceptance_of_several(p, q, k))
    assert abs(rate - expected) <= 4 * math.sqrt(0.25 / len(all_of))
    # At temperature 0, the candidates are the most likely tokens.
    greedy = sampler(len(target)).speculate_many(target, draft, 1, 1, n_guesses=k)[0]
    finite = np.isfinite(draft).sum()
    assert greedy[: min(k, finite)].tolist() == np.argsort(-draft)[: min(k, finite)].tolist()


def test_the_distribution_test_detects_drafts_that_are_not_drawn() -> None:
    """It is wrong to accept the most likely token of the draft with p / q instead of drawing it."""
    target, draft = PAIRS["alike"]
    p, q = (kept_probabilities(x, [], OFF | REJECTION) for x in (target, draft))
    rng = np.random.default_rng(5)
    surest = int(np.argmax(q))
    residual = np.maximum(0, p - q) / np.maximum(0, p - q).sum()
    accepted = rng.random(N_DRAWS) < min(1, p[surest] / q[surest])
    tokens = np.where(accepted, surest, rng.choice(len(p), N_DRAWS, p=residual))
    assert not follows(tokens, p)


def test_the_sampling_error_falls_with_the_root_of_the_sample_size() -> None:
    def error(n: int, first: int) -> float:
        both, p, _ = speculate("unlike", n, first=first)
        return float(np.linalg.norm(np.bincount(both[:, 1], minlength=len(p)) / n - p))

    sizes = [1_000, 10_000, 100_000]
    errors = [np.mean([error(n, 1 + k * n) for k in range(6)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4, errors


def test_tokens_at_consecutive_positions_are_independent() -> None:
    both, p, _ = speculate("alike", top_k=6)
    kept = np.flatnonzero(p)
    rank = np.searchsorted(kept, both[:, 1])
    n = len(kept)
    table = np.bincount(rank[:-1] * n + rank[1:], minlength=n * n)
    expected = np.outer(p[kept], p[kept]).ravel() * (len(both) - 1)
    statistic, limit = chi_square(table, expected)
    assert statistic < limit


@pytest.mark.parametrize("lenience", [0.3, 0.8])
def test_lenience_changes_the_distribution_by_its_formula(lenience: float) -> None:
    both, p, q = speculate("alike", lenience=lenience)
    kept = np.minimum(q, p / lenience)
    residual = np.maximum(0, p - q)
    expected = kept + (1 - kept.sum()) * residual / residual.sum()
    assert follows(both[:, 1], expected)
    assert not follows(both[:, 1], p)
    assert (expected <= p / lenience + 1e-12).all()
    assert (both[:, 0] == both[:, 1]).mean() > np.minimum(p, q).sum()


def test_lenience_accepts_by_ratio_at_temperature_0() -> None:
    target = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    for token, ratio in ((1, 0.6), (2, 0.4)):
        draft = np.zeros(3, np.float32)
        draft[token] = 9
        for lenience, kept in ((ratio + 0.01, False), (ratio - 0.01, True), (1.0, False)):
            options = {"acceptance": "rejection", "lenience": lenience}
            drafted, chosen = sampler(3, **options).speculate_many(target, draft, 1, 1)[0]
            assert drafted == token
            assert chosen == (token if kept else 0)
