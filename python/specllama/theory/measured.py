"""The gain of speculation if wider decodes take longer: v(gamma + 1) replaces the paper's v(1).

`v` is a function of n or the times for 1, 2, 3, ... tokens (so `v[n - 1]` is v(n)), in seconds or
in any unit that `draft_step` and `latency` share, such as v(1). It need not rise with n: measured
curves have steps in both directions. `latency` is the additional time of a round, e.g. of a network
round trip. Times must be finite and not negative, and a round must take some time; otherwise
ArgumentError is raised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama.errors import ArgumentError
from specllama.theory import _arguments
from specllama.theory.decode_times import DecodeTimesLike
from specllama.theory.iid import expected_tokens


def time_per_token(
    alpha: float, gamma: int, v: DecodeTimesLike, draft_step: float = 0.0, latency: float = 0.0
) -> float:
    """(gamma d + v(gamma + 1) + latency) / expected_tokens, the mean time of a token.

    If only a latency L takes time, it is L / expected_tokens, as for a target spread over distant
    hosts. gamma = 0 is plain decoding.

    Args:
        alpha: Probability that a drafted token is accepted.
        gamma: Tokens drafted per round.
        v: Times of a target decode (see the module).
        draft_step: Time d of one draft-model step.
        latency: Additional time of a round.
    """
    tokens = expected_tokens(alpha, gamma)
    times = _arguments.decode_times(v, gamma + 1)
    return float(_arguments.round_times(times, draft_step, latency)[gamma] / tokens)


def measured_improvement_factor(
    alpha: float, gamma: int, v: DecodeTimesLike, draft_step: float = 0.0, latency: float = 0.0
) -> float:
    """The speed relative to plain decoding: Theorem 3.8 with v(gamma + 1) instead of v(1).

    Both have the latency: plain decoding has it for every token. For a constant v the result is
    `improvement_factor(alpha, gamma, draft_step / v)`.

    Args:
        alpha: Probability that a drafted token is accepted.
        gamma: Tokens drafted per round.
        v: Times of a target decode (see the module).
        draft_step: Time d of one draft-model step.
        latency: Additional time of a round.
    """
    plain = time_per_token(alpha, 0, v, draft_step, latency)
    return plain / time_per_token(alpha, gamma, v, draft_step, latency)


def measured_optimal_gamma(
    alpha: float,
    v: DecodeTimesLike,
    draft_step: float = 0.0,
    latency: float = 0.0,
    cap: int | None = None,
) -> int:
    """The gamma with the smallest `time_per_token`. All values are tried, because v may be a
    staircase, for which a search that stops at the first loss would stop too early.

    Args:
        alpha: Probability that a drafted token is accepted.
        v: Times of a target decode (see the module).
        draft_step: Time d of one draft-model step.
        latency: Additional time of a round.
        cap: Largest gamma to consider (default: the largest that an array `v` allows; 64 for a
            function).

    Returns:
        A gamma from 0 to `cap`; the smallest of equal ones.
    """
    alpha = _arguments.probability("alpha", alpha)
    if cap is None:
        cap = 64 if callable(v) else _arguments.decode_times(v).size - 1
    cap = _arguments.gamma("cap", cap)
    return int(np.argmax(speeds(np.full(cap, alpha), v, draft_step, latency)))


def speeds(
    acceptance: ArrayLike, v: DecodeTimesLike, draft_step: float = 0.0, latency: float = 0.0
) -> NDArray[np.float64]:
    """S(gamma), tokens per unit of time, for every gamma up to the length of the draft:

        S(gamma) = (1 + sum_{i <= gamma} prod_{j <= i} a_j) / (gamma d + v(gamma + 1) + latency)

    The product is the probability that token i is accepted: all tokens before it must be, too. With
    the same acceptance at all positions, the numerator is Equation 1.

    Args:
        acceptance: a_1, a_2, ...: the probability that a token is accepted if those before it are,
            shape [n_draft]. May be empty.
        v: Times of a target decode (see the module); an array must reach n_draft + 1 tokens.
        draft_step: Time d of one draft-model step.
        latency: Additional time of a round.

    Returns:
        S(0), which is plain decoding, to S(n_draft), shape [n_draft + 1]. The argmax is the best
        draft length.
    """
    rates = _arguments.floats("acceptance", acceptance)
    if rates.ndim != 1 or np.any(rates > 1):
        raise ArgumentError("acceptance must be a list of probabilities.")
    tokens = 1 + np.concatenate([[0.0], np.cumsum(np.cumprod(rates))])
    times = _arguments.decode_times(v, tokens.size)
    return np.asarray(tokens / _arguments.round_times(times, draft_step, latency))
