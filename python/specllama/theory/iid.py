"""The paper's formulas for one acceptance rate. They assume that tokens are accepted independently
of each other, and that a decode of gamma + 1 tokens takes as long as a decode of one.

`specllama.theory.measured` has the formulas without the second assumption. Unless another range is
given, alpha is from 0 to 1, gamma a whole number from 0 to 2^20 and a cost coefficient finite and
not negative; anything else raises ArgumentError.
"""

from __future__ import annotations

import math

import numpy as np

from specllama.theory import _arguments


def expected_tokens(alpha: float, gamma: int) -> float:
    """(1 - alpha^(gamma + 1)) / (1 - alpha), the expected tokens of a round (Equation 1).

    It is from 1 (nothing is accepted) to gamma + 1 (the whole draft and the target's own token).

    Args:
        alpha: Probability that a drafted token is accepted.
        gamma: Tokens drafted per round.
    """
    alpha, gamma = _arguments.probability("alpha", alpha), _arguments.gamma("gamma", gamma)
    if alpha == 0:
        return 1.0
    if alpha == 1:
        return gamma + 1.0
    # Computed with the power, the difference from 1 would lose most digits near alpha = 1.
    return -math.expm1((gamma + 1) * math.log(alpha)) / (1 - alpha)


def improvement_factor(alpha: float, gamma: int, c: float) -> float:
    """expected_tokens / (gamma c + 1), the speed relative to plain decoding (Theorem 3.8).

    Args:
        alpha: Probability that a drafted token is accepted.
        gamma: Tokens drafted per round.
        c: Cost coefficient d / v(1): a draft-model step over a target decode (Definition 3.7).
    """
    return expected_tokens(alpha, gamma) / (gamma * _arguments.cost("c", c) + 1)


def improvement_lower_bound(alpha: float, c: float) -> float:
    """(1 + alpha) / (1 + c), a lower bound of the best gamma's factor (Corollary 3.9).

    It is the factor of gamma = 1. It is above 1 if alpha > c; otherwise no gamma is faster than
    plain decoding. With measured decode times, use `measured_improvement_factor` of gamma = 1.

    Args:
        alpha: Probability that a drafted token is accepted.
        c: Cost coefficient d / v(1).
    """
    return improvement_factor(alpha, 1, c)


def operations_factor(alpha: float, gamma: int, c_hat: float) -> float:
    """(gamma c_hat + gamma + 1) / expected_tokens: arithmetic relative to plain decoding
    (Theorem 3.11).

    Args:
        alpha: Probability that a drafted token is accepted.
        gamma: Tokens drafted per round.
        c_hat: Operations per token of the draft model over those of the target (Definition 3.10).
    """
    c_hat = _arguments.cost("c_hat", c_hat)
    return (gamma * c_hat + gamma + 1) / expected_tokens(alpha, gamma)


def optimal_gamma(alpha: float, c: float, cap: int = 64) -> int:
    """The gamma from 0 to `cap` with the greatest `improvement_factor` (section 3.5).

    All values are tried. 0 if none is faster than plain decoding; the smallest of equal ones.

    Args:
        alpha: Probability that a drafted token is accepted.
        c: Cost coefficient d / v(1).
        cap: Largest gamma to consider.
    """
    cap = _arguments.gamma("cap", cap)
    return int(np.argmax([improvement_factor(alpha, gamma, c) for gamma in range(cap + 1)]))
