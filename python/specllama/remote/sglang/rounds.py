"""Rounds of a text with log-probabilities from an SGLang server."""

from __future__ import annotations

import time
from itertools import takewhile

import numpy as np

from specllama import _core
from specllama._core import TokenLogprobs, VerifyAnswer
from specllama.errors import RemoteError
from specllama.remote.sglang.generate import Generate, Row
from specllama.remote.target import Branch
from specllama.remote.text import Text, named

_LEAST_SHARE = 0.1
"""Smallest fraction of a round's time that counts as the decode, for any round trip time."""


class Rounds:
    """See `specllama.remote.target.Rounds`. Tokens are chosen here, by the project's own rule, from
    SGLang's log-probabilities. So the noise of a choice depends only on the seed and the position.

    Args:
        generate: Sends requests to the server.
        tokenizer: The vocabulary.
        n_vocab: Number of its ids that the server has; no others are sent.
        trip: Seconds of a round trip.
        text: The text.

    Raises:
        ArgumentError: An option of sampling is out of range.
    """

    def __init__(
        self,
        generate: Generate,
        tokenizer: _core.Tokenizer,
        n_vocab: int,
        trip: float,
        text: Text,
    ) -> None:
        self._generate = generate
        self._tokenizer = tokenizer
        self._n_vocab = n_vocab
        self._trip = trip
        self._text = text
        sampling = text.sampling
        self._sampler = _core.Sampler(_own_rule(sampling), tokenizer.n_vocab)
        self._n_logprobs = sampling.logprobs
        greedy = sampling.temperature == 0
        self._n_top = min(max(1 if greedy else sampling.top_k, self._n_logprobs), n_vocab)
        self._logits = np.full(tokenizer.n_vocab, -np.inf, dtype=np.float32)
        self._n_cached: int | None = None

    def round(self, generated: list[int], draft: list[int], branches: list[Branch]) -> VerifyAnswer:
        """Verify the main path, up to the first token that the server does not have."""
        draft = list(takewhile(lambda token: token < self._n_vocab, draft))
        before = [*self._text.prompt, *generated]
        began = time.monotonic()
        answer = self._generate.rows(before, draft, self._n_top)
        took = time.monotonic() - began
        if self._n_cached is None:
            self._n_cached = answer.n_cached
        seconds = answer.seconds
        if not 0 < seconds < took:
            seconds = max(took - self._trip, took * _LEAST_SHARE)
        tokens: list[int] = []
        logprobs: list[TokenLogprobs] = []
        ended = False
        for drafted, row in zip([*draft, None], answer.rows, strict=True):
            token = self._choose(row, [*before, *tokens])
            ended = self._tokenizer.is_end(token)
            if ended:
                break
            tokens.append(token)
            if self._n_logprobs >= 0:
                top = row[: self._n_logprobs]
                logprobs.append(TokenLogprobs(token=token, logprob=dict(row)[token], top=top))
            if token != drafted or len(generated) + len(tokens) == self._text.max_tokens:
                break
        return VerifyAnswer(
            tokens=tokens,
            logprobs=logprobs,
            seconds=seconds,
            n_verified=len(draft),
            finish_reason="stop" if ended else None,
            exact=False,
            n_reused=self._n_cached,
        )

    def close(self) -> None:
        """Do nothing: SGLang keeps no state of a text."""

    def _choose(self, row: Row, context: list[int]) -> int:
        tokens = [token for token, _ in row]
        if max(tokens) >= self._tokenizer.n_vocab:
            raise RemoteError(
                f"The server sent token {max(tokens)}, but the vocabulary here has only "
                f"{self._tokenizer.n_vocab} tokens; give the GGUF of the server's model."
            )
        self._logits[tokens] = [value for _, value in row]
        token = self._sampler.choose(self._logits, context)
        self._logits[tokens] = -np.inf
        if token < 0:
            raise RemoteError("The server sent no token that can be chosen.")
        return token


def _own_rule(sampling: _core.SamplingOptions) -> _core.SamplingOptions:
    """Return the options for choosing tokens here."""
    return _core.SamplingOptions(
        **(named(sampling) | {"seed": sampling.seed, "logprobs": -1, "reasoning_budget": -1})
    )
