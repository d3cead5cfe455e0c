"""The probability that a drafted token is accepted, from two distributions over the vocabulary.

`p` is the target's and `q` the draft model's distribution, after temperature, top-k and so on
(section 2.2: every sampling method is sampling from an adjusted distribution; greedy decoding has
the whole mass on one token). Both have shape [..., n_vocabulary] and are converted to float64. Each
row must sum to 1 within 0.001 and is scaled to sum to 1 exactly; otherwise ArgumentError is raised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama.errors import ArgumentError
from specllama.theory import _arguments

Floats = NDArray[np.float64]

_SUM_TOLERANCE = 1e-3  # more than the error of a float32 softmax over a large vocabulary


def lk_divergence(p: ArrayLike, q: ArrayLike) -> Floats:
    """D_LK(p, q) = sum |p - (p + q) / 2|, which is the total variation distance.

    Symmetric; 0 for equal distributions, 1 for distributions that share no token (Definition 3.2,
    Lemma 3.3, Corollary 3.4).

    Args:
        p, q: Distributions, shape [..., n_vocabulary] (see the module).

    Returns:
        The divergence of each pair, shape [...].
    """
    p, q = pair(p, q)
    return np.asarray(np.minimum(np.abs(p - q).sum(axis=-1) / 2, 1.0))


def acceptance(p: ArrayLike, q: ArrayLike) -> Floats:
    """beta = 1 - D_LK(p, q) = sum min(p, q), the acceptance of rejection sampling (Theorem 3.5).

    Args:
        p, q: Distributions, shape [..., n_vocabulary] (see the module).

    Returns:
        The probability that a token drawn from q is accepted, shape [...].
    """
    p, q = pair(p, q)
    return np.asarray(np.minimum(np.minimum(p, q).sum(axis=-1), 1.0))


def alpha(p: ArrayLike, q: ArrayLike) -> float:
    """alpha = E[min(p, q)], the mean of `acceptance` over all given pairs (Corollary 3.6).

    Args:
        p, q: Distributions at some positions of a text, shape [..., n_vocabulary] (see the module).
    """
    beta = acceptance(p, q)
    if beta.size == 0:
        raise ArgumentError("p and q must have at least one distribution.")
    return float(beta.mean())


def coupled_acceptance(p: ArrayLike, q: ArrayLike) -> Floats:
    """The acceptance of the coupled rule: target and draft model choose with the same noise.

    Two Gumbel argmaxes with common noise are the same token x with probability
    1 / sum_y max(p_y / p_x, q_y / q_x). The sum over x is the Jaccard index of Moulton and Jiang,
    "Maximally consistent sampling and the Jaccard index of probability distributions" (2018).

    Args:
        p, q: Distributions, shape [..., n_vocabulary] (see the module).

    Returns:
        The probability that both choose the same token, shape [...].
    """
    p, q = pair(p, q)
    # With tokens sorted by falling p / q, the larger quotient is p_y / p_x for every y up to x and
    # q_y / q_x for every y after x: two running sums replace the double loop.
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-(p / q), axis=-1)
    p, q = np.take_along_axis(p, order, axis=-1), np.take_along_axis(q, order, axis=-1)
    p_sum = np.cumsum(p, axis=-1)
    q_rest = np.maximum(1 - np.cumsum(q, axis=-1), 0)
    shared = (p > 0) & (q > 0)
    both = np.zeros_like(p)
    np.divide(p * q, p_sum * q + q_rest * p, out=both, where=shared)
    return np.asarray(np.minimum(both.sum(axis=-1), 1.0))


def coupled_acceptance_bound(p: ArrayLike, q: ArrayLike) -> Floats:
    """(1 - TV) / (1 + TV), a lower bound of `coupled_acceptance`; TV is `lk_divergence`.

    Daliri, Musco, Suresh: "Coupling without communication and drafter-invariant speculative
    decoding" (2024). They also show that no rule without communication has a better worst case.

    Args:
        p, q: Distributions, shape [..., n_vocabulary] (see the module).

    Returns:
        The bound for each pair, shape [...].
    """
    distance = lk_divergence(p, q)
    return np.asarray((1 - distance) / (1 + distance))


def greedy_draft_acceptance(p: ArrayLike, q: ArrayLike) -> Floats:
    """p[argmax q]: the acceptance if q's likeliest token is drafted and the target draws from p.

    Args:
        p, q: Distributions, shape [..., n_vocabulary] (see the module).

    Returns:
        The probability that the target draws that token, shape [...].
    """
    p, q = pair(p, q)
    best = np.argmax(q, axis=-1)[..., np.newaxis]
    return np.asarray(np.take_along_axis(p, best, axis=-1)[..., 0])


def pair(p: Any, q: Any) -> tuple[Floats, Floats]:
    """Return both distributions, checked and scaled (see the module). Raises ArgumentError."""
    p, q = _distributions("p", p), _distributions("q", q)
    if p.shape != q.shape:
        raise ArgumentError(f"p and q must have the same shape, not {p.shape} and {q.shape}.")
    return p, q


def _distributions(name: str, value: Any) -> Floats:
    array = _arguments.floats(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ArgumentError(f"{name} must have the vocabulary as its last axis.")
    total = array.sum(axis=-1, keepdims=True)
    if np.any(np.abs(total - 1) > _SUM_TOLERANCE):
        worst = float(total.flat[np.argmax(np.abs(total - 1))])
        raise ArgumentError(f"{name} must sum to 1 over the vocabulary, not to {worst:.6g}.")
    return np.asarray(array / total)
