"""Drafts: tokens that may come next, in the form in which they are drafted and sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specllama._core.plan import Evidence
from specllama.formats.wire import MOST_TOLD


class Branch(NamedTuple):
    """Tokens that may come after the first `depth` tokens of a draft, in place of its others."""

    depth: int
    tokens: list[int]
    evidence: list[Evidence]


class Chain(NamedTuple):
    """A draft without branches: a row of tokens that may come, with what is known of each."""

    tokens: list[int]
    evidence: list[Evidence]

    def agreed(self, tokens: Sequence[int]) -> int:
        """Return the number of leading tokens that this chain and `tokens` have in common."""
        n = 0
        for drafted, token in zip(self.tokens, tokens, strict=False):
            if drafted != token:
                break
            n += 1
        return n


@dataclass
class Draft:
    """Tokens that may come, with what is known of each: a trunk, and branches that leave it."""

    tokens: list[int] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def add(self, token: int, evidence: Evidence) -> None:
        """Add a token to the trunk."""
        self.tokens.append(token)
        self.evidence.append(evidence)

    def chains(self) -> Iterator[Chain]:
        """Yield the trunk, then each branch with the part of the trunk that leads to it."""
        yield Chain(self.tokens, self.evidence)
        for depth, tokens, evidence in self.branches:
            yield Chain([*self.tokens[:depth], *tokens], [*self.evidence[:depth], *evidence])

    def agreed(self, tokens: Sequence[int]) -> int:
        """Return the number of leading tokens that the trunk and `tokens` have in common."""
        return Chain(self.tokens, self.evidence).agreed(tokens)

    def foreseen(self, tokens: Sequence[int]) -> int:
        """Return how many leading tokens of `tokens` the draft foresees, by its best chain."""
        return max(chain.agreed(tokens) for chain in self.chains())

    def after(self, tokens: Sequence[int]) -> Draft:
        """Return what is left of the draft after `tokens` came; an empty draft if none of its
        chains has them and goes on."""
        n = len(tokens)
        chains = [chain for chain in self.chains() if chain.agreed(tokens) == n < len(chain.tokens)]
        return joined(Chain(chain.tokens[n:], chain.evidence[n:]) for chain in chains)

    def add_rest(self, other: Draft) -> int:
        """If another draft begins with this trunk, add its further tokens; return how many."""
        n = len(self.tokens)
        if other.tokens[:n] != self.tokens:
            return 0
        self.tokens += other.tokens[n:]
        self.evidence += other.evidence[n:]
        return len(self.tokens) - n

    def told(self) -> tuple[dict[str, Any], list[Evidence]]:
        """Return the fields to send, with as many branches as may be sent, and what is known of
        each token in them."""
        evidence = [*self.evidence]
        branches = []
        for branch in self.branches:
            if len(evidence) + len(branch.tokens) > MOST_TOLD:
                break
            branches.append([branch.depth, *branch.tokens])
            evidence += branch.evidence
        body: dict[str, Any] = {"draft": self.tokens}
        return body | ({"branches": branches} if branches else {}), evidence

    @property
    def n_told(self) -> int:
        """Number of the tokens that are sent, those of branches included."""
        return len(self.told()[1])


def joined(chains: Iterator[Chain]) -> Draft:
    """Return a draft whose trunk is the first chain that is not empty; others become branches."""
    draft = Draft()
    for chain in chains:
        if not draft.tokens:
            draft.tokens, draft.evidence = list(chain.tokens), list(chain.evidence)
        elif (n := draft.agreed(chain.tokens)) < len(chain.tokens):
            draft.branches.append(Branch(n, list(chain.tokens[n:]), list(chain.evidence[n:])))
    return draft


def numbered(nodes: Sequence[tuple[int, Evidence, int]], n_trunk: int, kept: Set[int]) -> Draft:
    """Return the draft that consists of some nodes of a tree.

    Args:
        nodes: Each node's token, what is known of it, and its parent's number or -1; the trunk's
            nodes come first.
        n_trunk: Number of the trunk's nodes.
        kept: Numbers of the nodes to keep; a kept node's parent must be kept.
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
    # If no node of the trunk is kept, the first branch becomes the trunk.
    return draft if draft.tokens else joined(draft.chains())
