"""Rounds of a text for which an SGLang server gives log-probabilities."""

from __future__ import annotations

import time
from itertools import takewhile
from typing import Literal

import numpy as np

from specllama import _core
from specllama._core import TokenLogprobs
from specllama.errors import RemoteError
from specllama.remote.answer import Answer
from specllama.remote.draft import Draft
from specllama.remote.proposing import draft_sampling
from specllama.remote.sglang.generate import Generate, Row
from specllama.remote.text import Text
from specllama.remote.trip import Trip

_LEAST_SHARE = 0.1
"""Least fraction of a round's time that counts as the decode's, whatever the round trip takes."""


class Rounds:
    """See `Exchange`. The tokens are chosen here, by the project's own rule, from log-probabilities
    that SGLang gives. So which token comes depends only on the seed and the position.

    Args:
        generate: Asks the server.
        tokenizer: The vocabulary.
        n_vocab: How many of its ids the server knows; no others are sent.
        text: The text.
        trip: The time of the round trip.

    Raises:
        ArgumentError: An option of sampling is out of range.
    """

    def __init__(
        self,
        generate: Generate,
        tokenizer: _core.Tokenizer,
        n_vocab: int,
        text: Text,
        trip: Trip,
    ) -> None:
        self._generate = generate
        self._tokenizer = tokenizer
        self._n_vocab = n_vocab
        self._text = text
        self._trip = trip
        sampling = text.options.sampling
        self._sampler = _core.Sampler(draft_sampling(sampling, text.seed), tokenizer.n_vocab)
        self._n_logprobs = sampling.logprobs
        greedy = sampling.temperature == 0
        self._n_top = min(max(1 if greedy else sampling.top_k, self._n_logprobs), n_vocab)
        self._spelled = _core.TextStream(tokenizer, stop=text.options.stop)
        self._logits = np.full(tokenizer.n_vocab, -np.inf, dtype=np.float32)
        self._n_cached = 0

    def open(self) -> Answer:
        """Open the generation, or open it again after the tokens so far."""
        if self._text.n_left == 0:
            return self._answer([], 0, "length", 0.0)
        return self._round([], first=True)

    def verify(self, draft: Draft) -> Answer:
        """Have a draft's trunk verified, up to the first token that the server does not know."""
        known = takewhile(lambda token: token < self._n_vocab, draft.tokens)
        return self._round(list(known), first=False)

    def close(self) -> None:
        """Give the generation up; SGLang need not be told."""

    def _round(self, draft: list[int], *, first: bool) -> Answer:
        before = [*self._text.prompt, *self._text.generated]
        began = time.monotonic()
        told = self._generate.rows(before, draft, self._n_top)
        took = time.monotonic() - began
        if first:
            self._n_cached = told.n_cached
        seconds = told.seconds
        if not 0 < seconds < took:
            seconds = max(took - self._trip.seconds, took * _LEAST_SHARE)
        tokens: list[int] = []
        reason: Literal["stop", "length"] | None = None
        for drafted, row in zip([*draft, None], told.rows, strict=True):
            token = self._choose(row, [*before, *tokens])
            tokens.append(token)
            reason = self._commit(token, token == drafted, row, len(tokens))
            if reason is not None or token != drafted:
                break
        return self._answer(tokens, len(draft), reason, seconds)

    def _choose(self, row: Row, context: list[int]) -> int:
        tokens = [token for token, _ in row]
        if max(tokens) >= self._tokenizer.n_vocab:
            raise RemoteError(
                f"The server tells of token {max(tokens)}, but there are "
                f"{self._tokenizer.n_vocab} here: its vocabulary is another."
            )
        self._logits[tokens] = [value for _, value in row]
        token = self._sampler.choose(self._logits, context)
        self._logits[tokens] = -np.inf
        if token < 0:
            raise RemoteError("The server tells of no token that may come.")
        return token

    def _commit(
        self, token: int, from_draft: bool, row: Row, n_new: int
    ) -> Literal["stop", "length"] | None:
        """Add a token, the n_new-th of the round, to the text; return why that ends, if it does."""
        if self._tokenizer.is_end(token):
            return "stop"
        logprobs = None
        if self._n_logprobs >= 0:
            top = row[: self._n_logprobs]
            logprobs = TokenLogprobs(token=token, logprob=dict(row)[token], top=top)
        if self._spelled.push(token, from_draft=from_draft, logprobs=logprobs):
            return "stop"
        return "length" if n_new == self._text.n_left else None

    def _answer(
        self,
        tokens: list[int],
        n_drafted: int,
        reason: Literal["stop", "length"] | None,
        seconds: float,
    ) -> Answer:
        done = reason is not None
        return Answer(
            tokens=tokens,
            n=self._spelled.n_kept,
            chunks=self._spelled.take(ended=done),
            seconds=seconds,
            done=done,
            n_drafted=n_drafted,
            finish_reason=reason,
            stop_string=self._spelled.stop_string,
            n_reused=self._n_cached,
        )
