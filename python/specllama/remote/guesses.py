"""The tokens that a draft model would have chosen in place of the one it chose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specllama import _core
from specllama._core import Source, TokenLogprobs
from specllama._core.plan import Evidence


class Guesses:
    """Finds second, third, ... choices by the request's own rule, among the model's likeliest
    tokens.

    Args:
        sampling: Options by which the request chooses tokens.
        n_vocab: Size of the vocabulary, in tokens.
        n_beside: Guesses wanted besides the first.
    """

    def __init__(self, sampling: _core.SamplingOptions, n_vocab: int, n_beside: int) -> None:
        self._sampler = _core.Sampler(sampling, n_vocab)
        self._logits = np.full(n_vocab, -np.inf, dtype=np.float32)
        self._n_beside = n_beside

    def beside(self, said: TokenLogprobs, before: Sequence[int]) -> list[tuple[int, Evidence]]:
        """Return the guesses, in the order in which the rule chooses them; with each, the believed
        probability that it is right if all before it are wrong.

        Args:
            said: The token that the model chose, and log-probabilities of the likeliest tokens.
            before: All tokens before that token.
        """
        others = {token: logprob for token, logprob in said.top if token != said.token}
        tokens = list(others)
        self._logits[tokens] = list(others.values())
        left = 1 - math.exp(min(said.logprob, 0.0))
        guesses = []
        for _ in range(min(self._n_beside, len(tokens))):
            token = self._sampler.choose(self._logits, before)
            if token not in others:
                break
            self._logits[token] = -np.inf
            own = math.exp(others[token])
            believed = own / left if own < left else 1.0
            left -= own
            guesses.append((token, Evidence(Source.model, confidence=believed)))
        self._logits[tokens] = -np.inf
        return guesses
