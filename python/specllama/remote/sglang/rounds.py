"""Rounds of a text for which an SGLang server gives log-probabilities."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np

from specllama import _core
from specllama._core import TokenLogprobs
from specllama.errors import RemoteError
from specllama.formats.wire import chunk_to_wire
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
        text: The text.
        trip: The time of the round trip.

    Raises:
        ArgumentError: An option of sampling is out of range.
    """

    def __init__(
        self, generate: Generate, tokenizer: _core.Tokenizer, text: Text, trip: Trip
    ) -> None:
        self._generate = generate
        self._tokenizer = tokenizer
        self._text = text
        self._trip = trip
        sampling = text.options.sampling
        self._sampler = _core.Sampler(draft_sampling(sampling, text.seed), tokenizer.n_vocab)
        self._n_logprobs = sampling.logprobs
        greedy = sampling.temperature == 0
        self._n_top = max(1 if greedy else sampling.top_k, self._n_logprobs)
        self._spelled = _core.TextStream(tokenizer, stop=text.options.stop)
        self._logits = np.full(tokenizer.n_vocab, -np.inf, dtype=np.float32)
        self._n_cached = 0

    def open(self) -> dict[str, Any]:
        """Open the generation, or open it again after the tokens so far."""
        if self._text.n_left == 0:
            return self._answer([], 0, "length", 0.0)
        return self._round([], first=True)

    def verify(self, draft: Draft) -> dict[str, Any]:
        """Have a draft's trunk verified."""
        return self._round(draft.tokens, first=False)

    def close(self) -> None:
        """Give the generation up; SGLang need not be told."""

    def _round(self, draft: list[int], *, first: bool) -> dict[str, Any]:
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
        if not all(0 <= token < self._tokenizer.n_vocab for token in tokens):
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
    ) -> dict[str, Any]:
        done = reason is not None
        return {
            "tokens": tokens,
            "n": self._spelled.n_kept,
            "chunks": [chunk_to_wire(chunk) for chunk in self._spelled.take(ended=done)],
            "drafted": n_drafted,
            "seconds": seconds,
            "done": done,
            "finish_reason": reason,
            "stop_string": self._spelled.stop_string,
            "exact": False,
            "reused": self._n_cached,
        }
