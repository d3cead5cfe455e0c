"""Prompts that begin alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_LEAST_COMMON = 32
"""Tokens that two prompts must begin with in common for one request to wait for the other."""


def waits_for_prefix(
    mine: NDArray[np.int32], read: Iterable[tuple[NDArray[np.int32], int]]
) -> bool:
    """Return whether a request should wait: if its prompt begins with a good part of a prompt that
    is still being read, that part need not be decoded twice.

    Args:
        mine: The request's prompt.
        read: The prompts that are being read, each with the number of its tokens read so far.
    """
    for prompt, n_read in read:
        n = min(_n_common(mine, prompt), len(mine) - 1)
        if n > n_read and n >= max(len(prompt) // 2, _LEAST_COMMON):
            return True
    return False


def _n_common(prompt: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Return the number of tokens that two prompts begin with in common."""
    n = min(len(prompt), len(other))
    differ = np.not_equal(prompt[:n], other[:n])
    return int(differ.argmax()) if differ.any() else n
