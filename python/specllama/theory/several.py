"""The probability that one of several candidates for a token is accepted, from two distributions.

`p` and `q` are as in `distributions`. The k candidates are drawn from q without replacement: they
have the k highest values of log q + Gumbel noise. (Kool, van Hoof, Welling: "Stochastic beams and
where to find them", ICML 2019, section 2.3.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama import _check
from specllama.theory import distributions

Floats = NDArray[np.float64]

_MOST = 8
_LOG_TIMES = np.linspace(-30.0, 5.0, 281)
_CLOSE = 1e-300


def acceptance_of_several(p: ArrayLike, q: ArrayLike, k: int) -> Floats:
    """The acceptance of rejection sampling with k candidates, tested one after another, each
    against the rest of p and q after the candidates before it.

    For one candidate this is `acceptance`. Candidate i is accepted with probability
    min(1, p_i / q_i), where p_1 = p, q_1 = q. If it is rejected, p_(i+1) = norm(max(0, p_i - q_i)),
    and q_(i+1) is q_i without it, normalised. (Miao et al., "SpecInfer", 2024, section 4.3; without
    replacement in Chen et al., "Sequoia", 2024, section 3.2.) The sum is over all orders of
    candidates, so the time grows with n_vocabulary^(k - 1). Sun et al., "SpecTr: fast speculative
    decoding via optimal transport" (NeurIPS 2023), describe rules with higher acceptance for
    candidates drawn with replacement.

    Args:
        p, q: Distributions, shape [..., n_vocabulary].
        k: Candidates, 1 to 8.

    Returns:
        The probability that one of them is accepted, shape [...].
    """
    p, q = distributions.pair(p, q)
    k = _check.integer("k", k, low=1, high=_MOST)
    rows = [_judged(a, b, k) for a, b in zip(_rows(p), _rows(q), strict=True)]
    return np.asarray(np.minimum(rows, 1.0)).reshape(p.shape[:-1])


def coupled_acceptance_of_several(p: ArrayLike, q: ArrayLike, k: int) -> Floats:
    """The acceptance of the coupled rule with k candidates: the probability that the target's
    choice is among the draft model's first k tokens, with the same noise.

    For one candidate this is `coupled_acceptance`. Token y arrives at time E_y / q_y for the draft
    model and E_y / p_y for the target, with E_y exponential. Given that the target chooses x, with
    E_x = t, token y arrives before x for the draft model with probability
    1 - exp(-t max(0, q_y / q_x - p_y / p_x)), independently of the others. So the number of such
    tokens is Poisson-binomial, and t / p_x is exponential. The integral over t is computed
    numerically, with an error of about 1e-6.

    Args:
        p, q: Distributions, shape [..., n_vocabulary]; the time grows with n_vocabulary^2.
        k: Candidates, 1 to 8.

    Returns:
        The probability that the target's choice is one of them, shape [...].
    """
    p, q = distributions.pair(p, q)
    k = _check.integer("k", k, low=1, high=_MOST)
    rows = [_among_first(a, b, k) for a, b in zip(_rows(p), _rows(q), strict=True)]
    return np.asarray(np.minimum(rows, 1.0)).reshape(p.shape[:-1])


def _rows(array: Floats) -> Floats:
    return array.reshape(-1, array.shape[-1])


def _judged(p: Floats, q: Floats, k: int) -> float:
    kept = float(np.minimum(p, q).sum())
    residual = np.maximum(p - q, 0)
    left = residual.sum()
    if k == 1 or left < _CLOSE:
        return kept
    for token in np.flatnonzero(q):
        refused = q[token] - min(p[token], q[token])
        rest = q.copy()
        rest[token] = 0
        if refused > 0 and rest.sum() > _CLOSE:
            kept += refused * _judged(residual / left, rest / rest.sum(), k - 1)
    return kept


def _among_first(p: Floats, q: Floats, k: int) -> float:
    shared = (p > 0) & (q > 0)
    chosen = np.flatnonzero(shared)
    if chosen.size == 0:
        return 0.0
    # [x, t]: x is the target's choice, t its exponentially distributed time. The weights are those
    # of the trapezoidal rule over log t.
    times = np.exp(_LOG_TIMES)
    weights = times * np.exp(-times) * (_LOG_TIMES[1] - _LOG_TIMES[0])
    t = p[chosen, None] * times
    n_before = np.zeros((k, chosen.size, times.size))
    n_before[0] = 1
    for y in np.flatnonzero(q):
        rates = np.maximum(q[y] / q[chosen] - p[y] / p[chosen], 0)
        rates[chosen == y] = 0
        stays = np.exp(-t * rates[:, None])
        for j in range(k - 1, 0, -1):
            n_before[j] = n_before[j] * stays + n_before[j - 1] * (1 - stays)
        n_before[0] *= stays
    return float(p[chosen] @ (n_before.sum(axis=0) @ weights))
