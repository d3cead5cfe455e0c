"""Drafts made here for a target elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple, Protocol

import numpy as np

from specllama import _core
from specllama._core import MatchedToken, Prediction, Source
from specllama._core.plan import Evidence, NGramFollower
from specllama.drafter import Drafter, ProposedToken
from specllama.remote.draft import Branch, Draft, Way, joined, numbered
from specllama.remote.guesses import Guesses

_MOST_WAYS = 64
"""Continuations of a drafter of the caller's that are looked at, as in a session."""
_TOLD_OF = 8
"""Of how many likely tokens a guess beside the first is chosen."""


class Proposer(Protocol):
    """Drafts for one sequence, without taking noticeable time."""

    def follow(self, tokens: Sequence[int]) -> None:
        """Take in what the sequence goes on with."""

    def draft(self, n: int) -> Draft:
        """Return n tokens at most in a row."""

    def judge(self, draft: Draft, n_accepted: int, next_token: int) -> None:
        """Hear what became of a draft."""

    def end(self) -> None:
        """The sequence is over."""


class NGrams:
    """What a session's n-gram drafter does.

    Args:
        prompt: Tokens that the sequence begins with.
        reference: Tokens that may be drafted from, too.
        guesses: Most tokens at a position.
    """

    def __init__(self, prompt: Sequence[int], reference: Sequence[int], guesses: int = 1) -> None:
        self._guesses = guesses
        self._follower = NGramFollower(reference=reference)
        self._follower.append_batch(prompt)

    def follow(self, tokens: Sequence[int]) -> None:
        self._follower.append_batch(tokens)

    def draft(self, n: int) -> Draft:
        if self._guesses > 1:
            return self._tree(n)
        drafted = self._follower.draft(n)
        return Draft([token for token, _ in drafted], [evidence for _, evidence in drafted])

    def _tree(self, n: int) -> Draft:
        nodes = self._follower.tree(n, self._guesses - 1)
        n_trunk = 0
        while n_trunk < len(nodes) and nodes[n_trunk][2] == n_trunk - 1:
            n_trunk += 1
        return numbered(nodes, n_trunk, set(range(len(nodes))))

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
        guesses: Most tokens at a position.
    """

    def __init__(
        self,
        drafter: Drafter,
        lock: AbstractContextManager[bool],
        sequence: int,
        prompt: Sequence[int],
        n_vocab: int,
        guesses: int = 1,
    ) -> None:
        self._drafter = drafter
        self._lock = lock
        self._sequence = sequence
        self._n_vocab = n_vocab
        self._guesses = guesses
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
        proposal: Iterable[Any] | None = self._drafter.propose(self._sequence, self._tokens, n)
        answer = iter(() if proposal is None else proposal)
        proposed: list[Any] = list(islice(answer, 1))
        if proposed and isinstance(proposed[0], (list, tuple, np.ndarray)):
            proposed += islice(answer, _MOST_WAYS - 1)
            ways = [self._way(one, n) for one in proposed]
        else:
            ways = [self._way(chain(proposed, answer), n)]
        known = joined(iter(ways))
        draft.tokens, draft.evidence = known.tokens, known.evidence
        if self._guesses > 1:
            draft.branches = known.branches

    def _way(self, proposed: Iterable[ProposedToken], n: int) -> Way:
        known = [_evidence(one) for one in islice(proposed, n + 1)]  # an endless one ends, too
        if len(known) > n:
            raise ValueError(
                f"The drafter proposed {len(known)} tokens; at most {n} were asked for."
            )
        for token, _ in known:
            if not 0 <= token < self._n_vocab:
                raise ValueError(
                    f"The drafter proposed token {token}; the model has {self._n_vocab} tokens."
                )
        return Way([token for token, _ in known], [evidence for _, evidence in known])

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


class Drafted(NamedTuple):
    """A token of a draft model.

    Attributes:
        token: Its id.
        evidence: How likely it is by the model's own distribution.
        beside: What else it might have said, the likelier first.
    """

    token: int
    evidence: Evidence
    beside: list[tuple[int, Evidence]]


class DraftModel:
    """A smaller model with the target's vocabulary, in this process.

    It chooses by the target's own rule with the target's own noise (see `GenerateOptions.seed`),
    so that the two agree as often as can be.

    Args:
        core: The draft model as a session that decodes plainly.

    Attributes:
        guesses: Most tokens at a position.
    """

    def __init__(self, core: _core.Session, guesses: int = 1) -> None:
        self._core = core
        self.guesses = guesses
        self._decoded: list[int] = []

    def n_decoded(self, text: Sequence[int]) -> int:
        """Return how many of a text's first tokens it need not decode again."""
        pairs = zip(text, self._decoded, strict=False)
        same = takewhile(lambda pair: pair[0] == pair[1], pairs)
        return sum(1 for _ in same)

    def tokens(
        self, text: Sequence[int], n: int, sampling: _core.SamplingOptions
    ) -> Iterator[Drafted | None]:
        """Yield the tokens that it goes on with behind a text, n at most; None where a step gave
        none, as while it takes in the text. What has been decoded of the text is not decoded
        again."""
        room = min(n, self._core.n_ctx - len(text))
        if room < 1:
            return
        options = _core.GenerateOptions(
            max_tokens=room, stop=[], sampling=sampling, reference=[], replayed=[], generated=[],
            paced=False, trace=False,
        )  # fmt: skip
        guesses = None
        if self.guesses > 1:
            guesses = Guesses(sampling, self._core.n_vocab, self.guesses - 1)
        before = [*text]
        stream = self._core.start(text, options)
        try:
            while (chunks := stream.step()) is not None:
                if not chunks:
                    yield None
                for chunk in chunks:
                    if chunk.token is None or chunk.logprobs is None:
                        continue
                    likely = math.exp(min(chunk.logprobs.logprob, 0.0))
                    beside = [] if guesses is None else guesses.beside(chunk.logprobs, before)
                    before.append(chunk.token)
                    yield Drafted(chunk.token, Evidence(Source.model, confidence=likely), beside)
        finally:
            stream.cancel()
            self._decoded = before[:-1]

    def close(self) -> None:
        """Free it."""
        self._core.close()


def draft_sampling(
    target: _core.SamplingOptions, seed: int, *, guesses: int = 1
) -> _core.SamplingOptions:
    """Return how a draft model chooses for a request: as the target, but for its grammar.
    guesses: Tokens that are wanted of each position."""
    n_beside = guesses - 1
    # Where tokens are drawn, the second choice is often none of the likeliest.
    n_told = n_beside + 1 if target.temperature == 0 else _TOLD_OF * n_beside
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
        logprobs=n_told if n_beside > 0 else 0,
        processed_logprobs=False,
        seed=seed,
        acceptance=target.acceptance,
        lenience=1.0,
        grammar="",
        grammar_triggers=[],
    )


def add_guess(draft: Draft, drafted: Drafted) -> None:
    """Add a token of a draft model to a draft, and what might come in its place."""
    depth = len(draft.tokens)
    draft.add(drafted.token, drafted.evidence)
    for token, evidence in drafted.beside:
        draft.branches.append(Branch(depth, [token], [evidence]))
