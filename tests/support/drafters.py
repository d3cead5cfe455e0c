"""Drafters that are right or wrong as needed, to bring a session into every kind of round."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from specllama import Drafter


class CtrlC(Drafter):
    """Drafts nothing; Ctrl-C is pressed in the nth call."""

    def __init__(self, n: int) -> None:
        self.calls_left = n

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.calls_left -= 1
        if self.calls_left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return []


class SometimesRight(Drafter):
    """Drafts the right tokens, with every third to fifth one wrong."""

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


class MostlyRight(Drafter):
    """Drafts 1 to 15 right tokens at a time, with one in nine wrong."""

    def __init__(self) -> None:
        self.rng = random.Random(7)
        self.texts: list[list[int]] = []

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        n, begun = len(tokens), tokens.tolist()
        text = next((text for text in self.texts if text[:n] == begun), begun)
        draft = text[n : n + min(max_tokens, self.rng.randrange(1, 16))]
        return [token ^ 1 if self.rng.random() < 1 / 9 else token for token in draft]


class Branching(Drafter):
    """Proposes three chains, of which at most one is right.

    Args:
        n_vocab: Size of the vocabulary.
        place: Position of the right tokens: "main path", "branch", "random" (a chain that leaves
            the main path at a random position), or "nowhere".
    """

    def __init__(self, n_vocab: int, place: str) -> None:
        self.rng = random.Random(5)
        self.n_vocab = n_vocab
        self.place = place
        self.coming: list[int] = []
        self.observed: list[tuple[int, int]] = []

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[list[int]]:
        right = self.coming[len(tokens) - self.n_prompt :][:max_tokens]
        right += [0] * (max_tokens - len(right))
        leaves = {
            "main path": max_tokens,
            "branch": 0,
            "random": self.rng.randrange(max_tokens + 1),
            "nowhere": 0,
        }[self.place]
        chains = [self.wrong(right, leaves), right, self.wrong(right, leaves, 2)]
        if self.place == "main path":
            chains[:2] = [right, self.wrong(right, 0)]
        elif self.place == "nowhere":
            chains[1] = self.wrong(right, 0, 3)
        elif self.place == "random":
            end = self.rng.randrange(leaves, max_tokens + 1)
            chains[1] = self.wrong(right, end)
            rest = chains[1:]
            self.rng.shuffle(rest)
            chains[1:] = rest
        return chains

    def wrong(self, right: list[int], start: int, shift: int = 1) -> list[int]:
        return [*right[:start], *((token + shift) % self.n_vocab for token in right[start:])]

    def observe(
        self, sequence: int, draft: NDArray[np.int32], n_accepted: int, next_token: int
    ) -> None:
        self.observed.append((n_accepted, next_token))


class Random(Drafter):
    """Drafts any token with the same probability."""

    def __init__(self, n_vocab: int) -> None:
        self.rng = random.Random(4)
        self.n_vocab = n_vocab

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return self.rng.choices(range(self.n_vocab), k=max_tokens)


class Wrong(Drafter):
    """Drafts the same token always, as often as allowed."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return [3] * max_tokens


class FixedDraft(Drafter):
    """Proposes the same tokens every time, or as many of them as max_tokens allows."""

    def __init__(self, draft: list[Any], truncates: bool) -> None:
        self.draft = draft
        self.truncates = truncates

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> Any:
        if not self.truncates:
            return self.draft
        return [one if isinstance(one, int) else one[:max_tokens] for one in self.draft]
