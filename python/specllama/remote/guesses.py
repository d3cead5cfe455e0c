"""What a draft model would have said in place of what it said."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specllama import _core
from specllama._core import Source, TokenLogprobs
from specllama._core.plan import Evidence


class Guesses:
    """Second and third choices by the request's own rule, of the tokens that the model holds for
    the likeliest.

    Args:
        sampling: How the request chooses.
        n_vocab: Tokens that there are.
        n_beside: Guesses beside the first.
    """

    def __init__(self, sampling: _core.SamplingOptions, n_vocab: int, n_beside: int) -> None:
        self._sampler = _core.Sampler(sampling, n_vocab)
        self._logits = np.full(n_vocab, -np.inf, dtype=np.float32)
        self._n_beside = n_beside

    def beside(self, said: TokenLogprobs, before: Sequence[int]) -> list[tuple[int, Evidence]]:
        """Return them, the likeliest first, and what is believed of each when those before it are
        wrong.

        Args:
            said: What the model said, and of the likeliest tokens how likely they are.
            before: All tokens before it.
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
