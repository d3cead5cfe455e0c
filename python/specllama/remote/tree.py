"""A draft and what others have beside it, token by token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from specllama._core.plan import Evidence
from specllama.formats.wire import MOST_TOLD
from specllama.remote.draft import Draft, Way, numbered


class Tree:
    """The tokens of a draft and of others that leave it or go on from it, numbered: those of the
    draft's own trunk first.

    Args:
        draft: The draft.
        others: What else there is; nothing, if the draft has no tokens.
        guesses: Most tokens at a position.

    Attributes:
        tokens, evidence: Of each token, what it is and what is known of it.
        parents: The number of the one that it comes after; -1: none.
        depths: How many come before it.
        ranks: How many were there in its place before it.
    """

    def __init__(self, draft: Draft, others: Iterable[Draft] = (), *, guesses: int) -> None:
        self.tokens: list[int] = []
        self.evidence: list[Evidence] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.ranks: list[int] = []
        self._children: dict[int, dict[int, int]] = {-1: {}}  # by number and token
        self._n_trunk = len(draft.tokens)
        self._guesses = guesses
        for one in (draft, *others) if draft.tokens else ():
            for way in one.ways():
                self._add(way)

    @property
    def sides(self) -> list[tuple[Evidence, int]]:
        """What is known of each token beside the trunk, and which one it comes after."""
        n = self._n_trunk
        return list(zip(self.evidence[n:], self.parents[n:], strict=True))

    def path(self, tokens: Sequence[int]) -> list[int]:
        """Return the numbers of those that came, as far as they are there."""
        path: list[int] = []
        at = -1
        for token in tokens:
            child = self._children[at].get(token)
            if child is None:
                break
            path.append(child)
            at = child
        return path

    def n_aside(self, path: Sequence[int]) -> int:
        """Return how many of a path's come after a guess that was not the first in its place, that
        one included."""
        first = next((i for i, one in enumerate(path) if self.ranks[one] > 0), len(path))
        return len(path) - first

    def judged(self, tokens: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """Yield the number, from the trunk's end on, of each token beside it that the target was
        heard about, those before it in its place being wrong, and whether it was right."""
        at = -1
        for token in tokens:
            for drafted, child in self._children[at].items():
                if child >= self._n_trunk:
                    yield child - self._n_trunk, drafted == token
                if drafted == token:
                    break
            if token not in self._children[at]:
                return
            at = self._children[at][token]

    def draft(self, kept: Iterable[int]) -> Draft:
        """Return the draft that some of them are; with each there is the one that it comes
        after."""
        nodes = list(zip(self.tokens, self.evidence, self.parents, strict=True))
        return numbered(nodes, self._n_trunk, set(kept))

    def _add(self, way: Way) -> None:
        at = -1
        for token, evidence in zip(*way, strict=True):
            beside = self._children[at]
            if token not in beside:
                if len(beside) == self._guesses or len(self.tokens) == MOST_TOLD:
                    return
                number = len(self.tokens)
                self.tokens.append(token)
                self.evidence.append(evidence)
                self.parents.append(at)
                self.depths.append(0 if at < 0 else self.depths[at] + 1)
                self.ranks.append(len(beside))
                beside[token] = number
                self._children[number] = {}
            at = beside[token]
