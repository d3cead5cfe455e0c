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
from specllama.remote.draft import Branch, Chain, Draft, joined, numbered
from specllama.remote.guesses import Guesses
from specllama.remote.sampling import named

_MOST_CHAINS = 64
"""Most continuations of a custom drafter that are read, as in a local session."""
_TOLD_OF = 8
"""At temperatures above 0: likely tokens to choose from, per guess beside the first."""


class Proposer(Protocol):
    """A drafter of one sequence that takes no noticeable time."""

    def follow(self, tokens: Sequence[int]) -> None:
        """Take in tokens by which the sequence grew."""

    def draft(self, n: int) -> Draft:
        """Return a draft with at most n tokens in a row."""

    def judge(self, draft: Draft, n_accepted: int, next_token: int) -> None:
        """Learn that n_accepted tokens of a draft were accepted, and then next_token came."""

    def end(self) -> None:
        """Learn that the sequence is over."""


class NGrams:
    """Drafts as a local session's n-gram drafter does.

    Args:
        prompt: The sequence's first tokens.
        reference: Further tokens to draft from.
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
    """A custom drafter of the caller's. Its exceptions are caught and recorded.

    Args:
        drafter: The drafter.
        lock: Held during every call of the drafter, which need not be thread-safe.
        sequence: The id of the sequence.
        prompt: The sequence's first tokens.
        n_vocab: Size of the vocabulary, in tokens.
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
            proposed += islice(answer, _MOST_CHAINS - 1)
            chains = [self._read(one, n) for one in proposed]
        else:
            chains = [self._read(chain(proposed, answer), n)]
        known = joined(iter(chains))
        draft.tokens, draft.evidence = known.tokens, known.evidence
        if self._guesses > 1:
            draft.branches = known.branches

    def _read(self, proposed: Iterable[ProposedToken], n: int) -> Chain:
        known = [_evidence(one) for one in islice(proposed, n + 1)]  # also if it is endless
        if len(known) > n:
            raise ValueError(
                f"The drafter proposed {len(known)} tokens; at most {n} were asked for."
            )
        for token, _ in known:
            if not 0 <= token < self._n_vocab:
                raise ValueError(
                    f"The drafter proposed token {token}; the model has {self._n_vocab} tokens."
                )
        return Chain([token for token, _ in known], [evidence for _, evidence in known])

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
        except Exception as error:  # never fatal: rounds need no draft
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
        token: The token's id.
        evidence: The token's probability in the model's own distribution.
        beside: Further guesses at the position, in the order in which the rule chooses them.
    """

    token: int
    evidence: Evidence
    beside: list[tuple[int, Evidence]]


class DraftModel:
    """A smaller model with the target's vocabulary, in this process.

    It chooses tokens by the target's own rule with the target's own noise (see
    `GenerateOptions.seed`), so that the two agree as often as possible.

    Args:
        core: The draft model, as a session without drafters.

    Attributes:
        guesses: Most tokens at a position.
    """

    def __init__(self, core: _core.Session, guesses: int = 1) -> None:
        self._backend = core
        self.guesses = guesses
        self._decoded: list[int] = []

    def n_decoded(self, text: Sequence[int]) -> int:
        """Return how many of a text's first tokens are decoded already."""
        pairs = zip(text, self._decoded, strict=False)
        same = takewhile(lambda pair: pair[0] == pair[1], pairs)
        return sum(1 for _ in same)

    def tokens(
        self, text: Sequence[int], n: int, sampling: _core.SamplingOptions
    ) -> Iterator[Drafted | None]:
        """Yield the tokens with which the model continues a text, n at most. A step without a token
        yields None; such steps take in the text. Tokens decoded before are not decoded again."""
        room = min(n, self._backend.n_ctx - len(text))
        if room < 1:
            return
        options = _core.GenerateOptions(
            max_tokens=room, stop=[], sampling=sampling, reference=[], replayed=[], generated=[],
            cache_prompt=True, draft=None, trace=False,
        )  # fmt: skip
        guesses = None
        if self.guesses > 1:
            guesses = Guesses(sampling, self._backend.n_vocab, self.guesses - 1)
        before = [*text]
        stream = self._backend.start(text, options)
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
        """Free the model."""
        self._backend.close()


def draft_sampling(
    target: _core.SamplingOptions, seed: int, *, guesses: int = 1
) -> _core.SamplingOptions:
    """Return the options by which a draft model chooses for a request: the target's, without its
    grammar and the limit of a thought. guesses: tokens wanted at each position."""
    n_beside = guesses - 1
    # At temperatures above 0, the second choice is often not among the few likeliest tokens.
    n_told = n_beside + 1 if target.temperature == 0 else _TOLD_OF * n_beside
    own = {
        "logprobs": n_told if n_beside > 0 else 0,
        "processed_logprobs": False,
        "seed": seed,
        "lenience": 1.0,
        "grammar": "",
        "grammar_syntax": _core.GrammarSyntax.gbnf,
        "grammar_triggers": [],
        "reasoning_budget": -1,
    }
    return _core.SamplingOptions(**(named(target) | own))


def add_guess(draft: Draft, drafted: Drafted) -> None:
    """Add a token of a draft model to a draft, with its other guesses as branches."""
    depth = len(draft.tokens)
    draft.add(drafted.token, drafted.evidence)
    for token, evidence in drafted.beside:
        draft.branches.append(Branch(depth, [token], [evidence]))
