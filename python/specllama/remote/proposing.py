"""Drafts made here for a target elsewhere."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import numpy as np

from specllama import _core
from specllama._core import MatchedToken, Prediction, Source
from specllama._core.plan import Evidence, NGramFollower
from specllama.drafter import Drafter, ProposedToken


@dataclass
class Draft:
    """Tokens that may come, and what is known of each."""

    tokens: list[int] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    def add(self, token: int, evidence: Evidence) -> None:
        """Add a token."""
        self.tokens.append(token)
        self.evidence.append(evidence)

    def agreed(self, tokens: Sequence[int]) -> int:
        """Return how many of its tokens, from the first, are those that came."""
        n = 0
        for drafted, token in zip(self.tokens, tokens, strict=False):
            if drafted != token:
                break
            n += 1
        return n

    def first(self, n: int) -> Draft:
        """Return its first n tokens."""
        return Draft(self.tokens[:n], self.evidence[:n])


class Proposer(Protocol):
    """Drafts for one sequence, without taking noticeable time."""

    def follow(self, tokens: Sequence[int]) -> None:
        """Take in what the sequence goes on with."""

    def draft(self, n: int) -> Draft:
        """Return n tokens at most."""

    def judge(self, draft: Draft, n_accepted: int, next_token: int) -> None:
        """Hear what became of a draft."""

    def end(self) -> None:
        """The sequence is over."""


class NGrams:
    """What a session's n-gram drafter does."""

    def __init__(self, prompt: Sequence[int], reference: Sequence[int]) -> None:
        self._follower = NGramFollower(reference=reference)
        self._follower.append_batch(prompt)

    def follow(self, tokens: Sequence[int]) -> None:
        self._follower.append_batch(tokens)

    def draft(self, n: int) -> Draft:
        drafted = self._follower.draft(n)
        return Draft([token for token, _ in drafted], [evidence for _, evidence in drafted])

    def judge(self, draft: Draft, n_accepted: int, next_token: int) -> None:
        pass

    def end(self) -> None:
        pass


class Custom:
    """A drafter of the caller's own. What goes wrong in it is recorded.

    Args:
        drafter: The drafter.
        lock: Held while it is asked: it need not be safe from several threads.
        sequence: What the sequence is called.
        prompt: Its tokens.
        n_vocab: Tokens that there are.
    """

    def __init__(
        self,
        drafter: Drafter,
        lock: threading.Lock,
        sequence: int,
        prompt: Sequence[int],
        n_vocab: int,
    ) -> None:
        self._drafter = drafter
        self._lock = lock
        self._sequence = sequence
        self._n_vocab = n_vocab
        self._tokens = np.array(prompt, dtype=np.int32)
        self.n_errors = 0
        self.last_error = ""
        self._contained(lambda: drafter.begin(sequence, self._tokens))

    def follow(self, tokens: Sequence[int]) -> None:
        self._tokens = np.append(self._tokens, np.array(tokens, dtype=np.int32))

    def draft(self, n: int) -> Draft:
        draft = Draft()
        if n > 0:
            self._contained(lambda: self._ask(draft, n))
        return draft

    def _ask(self, draft: Draft, n: int) -> None:
        answer = self._drafter.propose(self._sequence, self._tokens, n) or ()
        proposed = list(islice(answer, n + 1))  # an endless one ends, too
        if proposed and isinstance(proposed[0], (list, tuple)):
            proposed = list(
                islice(proposed[0], n + 1)
            )  # of several guesses the first: drafts are chains here
        known = [_evidence(one) for one in proposed]  # type: ignore[arg-type]
        if len(known) > n:
            raise ValueError(
                f"The drafter proposed {len(known)} tokens; at most {n} were asked for."
            )
        for token, _ in known:
            if not 0 <= token < self._n_vocab:
                raise ValueError(
                    f"The drafter proposed token {token}; the model has {self._n_vocab} tokens."
                )
        for token, evidence in known:
            draft.add(token, evidence)

    def judge(self, draft: Draft, n_accepted: int, next_token: int) -> None:
        tokens = np.array(draft.tokens, dtype=np.int32)
        self._contained(
            lambda: self._drafter.observe(self._sequence, tokens, n_accepted, next_token)
        )

    def end(self) -> None:
        self._contained(lambda: self._drafter.end(self._sequence))

    def _contained(self, call: Callable[[], object]) -> None:
        try:
            with self._lock:
                call()
        except Exception as error:  # whatever it is: a draft is never needed
            self.n_errors += 1
            self.last_error = f"{type(error).__name__}: {error}"


def _evidence(one: ProposedToken) -> tuple[int, Evidence]:
    if isinstance(one, MatchedToken):
        return one.token, Evidence(Source.match, one.length)
    if isinstance(one, Prediction):
        return one.token, Evidence(Source.ngram, one.order, one.confidence)
    return int(one), Evidence(Source.other)


class DraftModel:
    """A smaller model with the target's vocabulary, in this process.

    It chooses by the target's own rule with the target's own noise (see `GenerateOptions.seed`),
    so that the two agree as often as can be.

    Args:
        core: The draft model as a session that decodes plainly.
    """

    def __init__(self, core: _core.Session) -> None:
        self._core = core

    def tokens(
        self, text: Sequence[int], n: int, sampling: _core.SamplingOptions
    ) -> Iterator[tuple[int, float] | None]:
        """Yield the tokens that it goes on with behind a text, n at most, and how likely each is
        by its own distribution; None where a step gave none, as while it takes in the text. What
        has been decoded of the text is not decoded again."""
        room = min(n, self._core.n_ctx - len(text))
        if room < 1:
            return
        options = _core.GenerateOptions(
            max_tokens=room, stop=[], sampling=sampling, reference=[], replayed=[], generated=[],
            paced=False, trace=False,
        )  # fmt: skip
        stream = self._core.start(text, options)
        try:
            while (chunks := stream.step()) is not None:
                if not chunks:
                    yield None
                for chunk in chunks:
                    if chunk.token is not None and chunk.logprobs is not None:
                        yield chunk.token, math.exp(min(chunk.logprobs.logprob, 0.0))
        finally:
            stream.cancel()

    def close(self) -> None:
        """Free it."""
        self._core.close()


def draft_sampling(target: _core.SamplingOptions, seed: int) -> _core.SamplingOptions:
    """Return how a draft model chooses for a request: as the target, but for its grammar."""
    return _core.SamplingOptions(
        temperature=target.temperature,
        top_k=target.top_k,
        top_p=target.top_p,
        min_p=target.min_p,
        repeat_penalty=target.repeat_penalty,
        frequency_penalty=target.frequency_penalty,
        presence_penalty=target.presence_penalty,
        penalty_last_n=target.penalty_last_n,
        logit_bias=target.logit_bias,
        logprobs=0,
        processed_logprobs=False,
        seed=seed,
        acceptance=target.acceptance,
        lenience=1.0,
        grammar="",
        grammar_triggers=[],
    )
