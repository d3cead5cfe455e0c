"""Drafters that do something else in the middle of a generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from specllama import Drafter


class Meddling(Drafter):
    """Drafts the right tokens, and performs an action in some of its calls.

    Args:
        coming: The expected generation.
        acts: Actions by the number of earlier calls.
        n_most: Most tokens of a proposal.
    """

    def __init__(
        self, coming: Sequence[int], acts: Mapping[int, Callable[[], object]], n_most: int = 3
    ) -> None:
        self.coming = list(coming)
        self.acts = dict(acts)
        self.n_most = n_most
        self.n_asked = 0

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        act = self.acts.get(self.n_asked)
        self.n_asked += 1
        if act is not None:
            act()
        return self.coming[len(tokens) - self.n_prompt :][: min(self.n_most, max_tokens)]


def every(n: int, act: Callable[[], object], times: int = 50) -> dict[int, Callable[[], object]]:
    """Return acts for `Meddling`: the same action in every n-th call."""
    return {n * (i + 1): act for i in range(times)}
