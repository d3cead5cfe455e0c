"""Tokens that may come next, as they are drafted and sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specllama._core.plan import Evidence
from specllama.formats.wire import MOST_TOLD


class Branch(NamedTuple):
    """What may come in place of a draft's tokens, behind the first `depth` of them."""

    depth: int
    tokens: list[int]
    evidence: list[Evidence]


class Way(NamedTuple):
    """Tokens that may come one after the other."""

    tokens: list[int]
    evidence: list[Evidence]

    def agreed(self, tokens: Sequence[int]) -> int:
        """Return how many of them, from the first, are those that came."""
        n = 0
        for drafted, token in zip(self.tokens, tokens, strict=False):
            if drafted != token:
                break
            n += 1
        return n


@dataclass
class Draft:
    """Tokens that may come, and what is known of each: a trunk, and branches that leave it."""

    tokens: list[int] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def add(self, token: int, evidence: Evidence) -> None:
        """Add a token to the trunk."""
        self.tokens.append(token)
        self.evidence.append(evidence)

    def ways(self) -> Iterator[Way]:
        """Yield what may come, the trunk first, and of the branches each with what leads to it."""
        yield Way(self.tokens, self.evidence)
        for depth, tokens, evidence in self.branches:
            yield Way([*self.tokens[:depth], *tokens], [*self.evidence[:depth], *evidence])

    def agreed(self, tokens: Sequence[int]) -> int:
        """Return how many tokens of the trunk, from the first, are those that came."""
        return Way(self.tokens, self.evidence).agreed(tokens)

    def foreseen(self, tokens: Sequence[int]) -> int:
        """Return how many of the tokens that came, from the first, stand on one of its ways."""
        return max(way.agreed(tokens) for way in self.ways())

    def after(self, tokens: Sequence[int]) -> Draft:
        """Return what is left of it behind tokens that came; nothing if none of its ways goes on
        from there."""
        n = len(tokens)
        ways = [way for way in self.ways() if way.agreed(tokens) == n < len(way.tokens)]
        return joined(Way(way.tokens[n:], way.evidence[n:]) for way in ways)

    def add_rest(self, other: Draft) -> int:
        """Add what another has behind the same trunk, if it has; return how many tokens."""
        n = len(self.tokens)
        if other.tokens[:n] != self.tokens:
            return 0
        self.tokens += other.tokens[n:]
        self.evidence += other.evidence[n:]
        return len(self.tokens) - n

    def first(self, n: int) -> Draft:
        """Return the first n tokens of its trunk."""
        return Draft(self.tokens[:n], self.evidence[:n])

    def told(self) -> tuple[dict[str, Any], list[Evidence]]:
        """Return it as it is sent, and what is known of each token: of branches as many as may
        be."""
        evidence = [*self.evidence]
        branches = []
        for branch in self.branches:
            if len(evidence) + len(branch.tokens) > MOST_TOLD:
                break
            branches.append([branch.depth, *branch.tokens])
            evidence += branch.evidence
        body: dict[str, Any] = {"draft": self.tokens}
        return body | ({"branches": branches} if branches else {}), evidence


def joined(ways: Iterator[Way]) -> Draft:
    """Return the draft of some ways, the likeliest first."""
    draft = Draft()
    for way in ways:
        if not draft.tokens:
            draft.tokens, draft.evidence = list(way.tokens), list(way.evidence)
        elif (n := draft.agreed(way.tokens)) < len(way.tokens):
            draft.branches.append(Branch(n, list(way.tokens[n:]), list(way.evidence[n:])))
    return draft


def numbered(nodes: Sequence[tuple[int, Evidence, int]], n_trunk: int, kept: Set[int]) -> Draft:
    """Return the draft that some of the nodes of a tree are; with each there is its parent.

    Args:
        nodes: Of each its token, what is known of it, and the number of its parent or -1; the
            trunk's come first.
        n_trunk: How many these are.
        kept: Numbers.
    """
    draft = Draft()
    for one in range(n_trunk):
        if one in kept:
            draft.add(*nodes[one][:2])
    inner = {nodes[one][2] for one in kept}
    for leaf in sorted(kept - inner):
        aside = []
        at = leaf
        while at >= n_trunk:
            aside.append(nodes[at])
            at = nodes[at][2]
        if aside:
            aside.reverse()
            tokens, evidence = [one[0] for one in aside], [one[1] for one in aside]
            draft.branches.append(Branch(at + 1, tokens, evidence))
    # Where nothing of the trunk is kept, the first branch is one.
    return draft if draft.tokens else joined(draft.ways())
