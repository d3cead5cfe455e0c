"""Checks of arguments shared by several functions of this package."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specllama import _check
from specllama.errors import ArgumentError

MAX_GAMMA = 2**20
"""More tokens than any draft has. It prevents that a mistyped cap fills the memory."""


def probability(name: str, value: Any) -> float:
    """Return `value` as a float from 0 to 1. Raises ArgumentError."""
    number = _check.number(name, value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{name} must be from 0 to 1, not {number}.")
    return number


def cost(name: str, value: Any) -> float:
    """Return `value` as a finite float that is not negative. Raises ArgumentError."""
    number = _check.number(name, value)
    if not 0 <= number < math.inf:
        raise ArgumentError(f"{name} must be finite and not negative, not {number}.")
    return number


def gamma(name: str, value: Any) -> int:
    """Return `value` as a number of drafted tokens. Raises ArgumentError."""
    return _check.integer(name, value, low=0, high=MAX_GAMMA)


def integers(name: str, value: Any) -> list[int]:
    """Return `value` as a list of whole numbers. Raises ArgumentError."""
    try:
        numbers = list(value)
    except TypeError:
        raise ArgumentError(f"{name} must be whole numbers, not {_check.quoted(value)}.") from None
    return [_check.integer(f"{name}[{i}]", one) for i, one in enumerate(numbers)]


def floats(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as an array of finite float64 that are not negative. Raises ArgumentError."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers.") from None
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ArgumentError(f"{name} must be finite numbers that are not negative.")
    return array


def decode_times(v: Any, n_max: int | None = None) -> NDArray[np.float64]:
    """Return v(1) to v(n_max), shape [n_max]. n_max None: all times of an array.

    Raises ArgumentError, also if an array has fewer than n_max times.
    """
    if callable(v):
        assert n_max is not None
        return floats("v(n)", [_check.number("v(n)", v(n)) for n in range(1, n_max + 1)])
    times = floats("v", v)
    if times.ndim != 1 or times.size == 0:
        raise ArgumentError("v must be a function of n or the times for 1, 2, 3, ... tokens.")
    if n_max is not None and times.size < n_max:
        raise ArgumentError(
            f"v must have {n_max} times, one more than the drafted tokens, not {times.size}."
        )
    return times[:n_max]


def round_times(
    times: NDArray[np.float64],
    draft_step: Any,
    latency: Any,
    n_steps: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return the time of a round for every number of drafted tokens: the steps of the draft model,
    the decode by the target and the latency.

    Args:
        times: v(1), v(2), ...: a round that drafts n tokens decodes n + 1.
        draft_step: Time of a step.
        latency: Additional time of a round.
        n_steps: Steps of the draft model for 0, 1, ... tokens, as many as `times`. None: a step for
            each token, as for a chain.

    Raises ArgumentError, also if a round would take no time.
    """
    step, wait = cost("draft_step", draft_step), cost("latency", latency)
    steps = np.arange(times.size) if n_steps is None else n_steps
    rounds: NDArray[np.float64] = times + step * steps + wait
    if rounds.min() <= 0:
        raise ArgumentError("A round must take time: v, draft_step and latency may not all be 0.")
    return rounds
