"""Drafters that are right or wrong at will, to bring the session into every kind of round."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray
from specllama import Drafter


class SometimesRight(Drafter):
    """Knows what comes, and gets every third to fifth token wrong."""

    def __init__(self, n_vocab: int) -> None:
        self.rng = random.Random(3)
        self.n_vocab = n_vocab
        self.coming: list[int] = []

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        draft = self.coming[len(tokens) - self.n_prompt :][:max_tokens]
        wrong = self.rng.randrange(2, 5)
        return [*draft[:wrong], *((token + 1) % self.n_vocab for token in draft[wrong:])]


class Random(Drafter):
    """Says any token with the same probability."""

    def __init__(self, n_vocab: int) -> None:
        self.rng = random.Random(4)
        self.n_vocab = n_vocab

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return self.rng.choices(range(self.n_vocab), k=max_tokens)


class Wrong(Drafter):
    """Says the same word all the time, as often as it may."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return [3] * max_tokens
