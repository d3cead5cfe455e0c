"""Approximation models: cheap sources of distributions over the next token.

(Leviathan et al. 2023, sections 2.3 and 3.6: the M_q of a target M_p.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from specllama import _core
from specllama.measure.logits import LogitsModel, Probabilities, probabilities


class Approximation(ABC):
    """A drafter as a source of distributions.

    Attributes:
        name: Its name in tables.
    """

    name: str

    @abstractmethod
    def distributions(
        self, tokens: Sequence[int], first: int, temperature: float, n_vocab: int
    ) -> Probabilities:
        """Return the distributions of tokens[first], tokens[first + 1], ... given the tokens before
        each.

        Args:
            tokens: A text.
            first: 1 or more.
            temperature: At 0, the likeliest token has probability 1.
            n_vocab: Size of the vocabulary.

        Returns:
            Shape [n_tokens - first, n_vocab]. A row of zeros means no proposal.
        """


class DraftModel(Approximation):
    """A second, smaller model."""

    def __init__(self, name: str, model: LogitsModel) -> None:
        self.name = name
        self.model = model

    def distributions(
        self, tokens: Sequence[int], first: int, temperature: float, n_vocab: int
    ) -> Probabilities:
        return probabilities(self.model.rows(tokens, first), temperature)


class _Counting(Approximation):
    """A drafter that counts the tokens of the text so far. A temperature above 0 does not change
    its distributions: they are the counted shares."""

    def distributions(
        self, tokens: Sequence[int], first: int, temperature: float, n_vocab: int
    ) -> Probabilities:
        self.clear()
        rows = np.zeros((len(tokens) - first, n_vocab))
        for i, token in enumerate(tokens):
            if i >= first:
                q = self.predict()
                if q and temperature == 0:
                    q = {max(q, key=lambda one: q[one]): 1.0}
                rows[i - first, list(q)] = list(q.values())
            self.learn(token)
        return rows

    @abstractmethod
    def clear(self) -> None:
        """Forget the text."""

    @abstractmethod
    def learn(self, token: int) -> None:
        """Add the next token."""

    @abstractmethod
    def predict(self) -> Mapping[int, float]:
        """Return the probabilities of the next token; {}: no proposal."""


class Unigram(_Counting):
    """Predicts each token with its frequency so far."""

    name = "unigram"

    def clear(self) -> None:
        self._counts: Counter[int] = Counter()

    def learn(self, token: int) -> None:
        self._counts[token] += 1

    def predict(self) -> Mapping[int, float]:
        return _shares(self._counts)


class Bigram(_Counting):
    """Predicts each token with its frequency after the last token so far."""

    name = "bigram"

    def clear(self) -> None:
        self._counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._last = -1

    def learn(self, token: int) -> None:
        self._counts[self._last][token] += 1
        self._last = token

    def predict(self) -> Mapping[int, float]:
        return _shares(self._counts[self._last])


class NGrams(_Counting):
    """Proposes NGramPredictor's token: the most frequent one after the longest known context."""

    def __init__(self, order: int) -> None:
        self.name = f"n-grams to {order}"
        self._order = order

    def clear(self) -> None:
        self._predictor = _core.NGramPredictor(max_order=self._order)

    def learn(self, token: int) -> None:
        self._predictor.update(token)

    def predict(self) -> Mapping[int, float]:
        return {one.token: 1.0 for one in self._predictor.predict(1)}


class Matches(_Counting):
    """Proposes MatchFinder's token, the one after the longest match of the text's end."""

    name = "matches"

    def clear(self) -> None:
        self._finder = _core.MatchFinder()

    def learn(self, token: int) -> None:
        self._finder.append(token)

    def predict(self) -> Mapping[int, float]:
        return {one.token: 1.0 for one in self._finder.predict(1)}


def counting() -> list[Approximation]:
    """Return the drafters that need no model."""
    return [Unigram(), Bigram(), NGrams(3), NGrams(4), Matches()]


def _shares(counts: Counter[int]) -> Mapping[int, float]:
    total = counts.total()
    return {token: count / total for token, count in counts.items()}
