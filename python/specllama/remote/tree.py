"""A draft, merged with the tokens that other drafts have beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from specllama._core.plan import Evidence
from specllama.formats.wire import MOST_TOLD
from specllama.remote.draft import Chain, Draft, numbered


class Tree:
    """A tree of the tokens of a draft and of other drafts that branch off or continue it. The nodes
    are numbered; those of the draft's own trunk come first.

    Args:
        draft: The draft.
        others: Other drafts; ignored if the draft has no tokens.
        guesses: Most tokens at a position.

    Attributes:
        tokens, evidence: Each node's token, and what is known of it.
        parents: Each node's parent, by number; -1: it has none.
        depths: How many nodes lead to each node.
        ranks: How many siblings precede each node; 0: it is the first guess at its position.
    """

    def __init__(self, draft: Draft, others: Iterable[Draft] = (), *, guesses: int) -> None:
        self.tokens: list[int] = []
        self.evidence: list[Evidence] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.ranks: list[int] = []
        self._children: dict[int, dict[int, int]] = {-1: {}}  # [parent][token]: the child's number
        self._n_trunk = len(draft.tokens)
        self._guesses = guesses
        for one in (draft, *others) if draft.tokens else ():
            for chain in one.chains():
                self._add(chain)

    @property
    def sides(self) -> list[tuple[Evidence, int]]:
        """The evidence and the parent of each node that is not on the trunk."""
        n = self._n_trunk
        return list(zip(self.evidence[n:], self.parents[n:], strict=True))

    def path(self, tokens: Sequence[int]) -> list[int]:
        """Return the numbers of the nodes that `tokens` follow, as far as the tree has them."""
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
        """Return how many nodes of a path there are from the first one that is not the first guess
        at its position."""
        first = next((i for i, one in enumerate(path) if self.ranks[one] > 0), len(path))
        return len(path) - first

    def judged(self, tokens: Sequence[int]) -> Iterator[tuple[int, bool]]:
        """Yield, for each side node that the target's tokens judge, its number counted from the
        trunk's end, and whether it was right. A node is judged if no earlier sibling is right."""
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
        """Return the draft that consists of some nodes. If `kept` has a node, it must have its
        parent."""
        nodes = list(zip(self.tokens, self.evidence, self.parents, strict=True))
        return numbered(nodes, self._n_trunk, set(kept))

    def _add(self, chain: Chain) -> None:
        at = -1
        for token, evidence in zip(*chain, strict=True):
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
