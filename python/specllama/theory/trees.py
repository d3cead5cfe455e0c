"""The gain of several candidates at a position, verified in one decode: a tree, not a chain.

The nodes of a tree are numbered so that each comes after its parent. The root, the last token of
the text, is -1 and not a node. The edge of a node is the probability that its token is right if its
parent is. Only one sibling can be right, so the edges below a node sum to at most 1.

Miao et al.: "SpecInfer: accelerating large language model serving with tree-based speculative
inference and verification" (ASPLOS 2024). Chen et al.: "Sequoia: scalable, robust, and
hardware-aware speculative decoding" (NeurIPS 2024). Li et al.: "EAGLE-2: faster inference of
language models with dynamic draft trees" (EMNLP 2024).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specllama import _check
from specllama.errors import ArgumentError
from specllama.theory import _arguments
from specllama.theory.decode_times import DecodeTimesLike

_ROUNDING = 1e-9


@dataclass(frozen=True)
class BestTree:
    """The best trees of all sizes up to that of `parents`: the best tree of n nodes is its first n.

    Attributes:
        parents: Parent of every node, -1 for the root.
        ranks: The rank of each node among the candidates at its position, from 0.
        expected_tokens: Expected tokens of a round that verifies the first n nodes, for n = 0, 1,
            ...; shape [n_nodes + 1].
    """

    parents: list[int]
    ranks: list[int]
    expected_tokens: NDArray[np.float64]

    def speeds(
        self, v: DecodeTimesLike, draft_step: float = 0.0, latency: float = 0.0
    ) -> NDArray[np.float64]:
        """Return tokens per unit of time for every size; the argmax is the best size.

        The draft model takes one step for each level of the tree: a step gives all candidates of a
        position.

        Args:
            v, draft_step, latency: As for `theory.speeds`; an array v must reach n_nodes + 1.

        Returns:
            Shape [n_nodes + 1]; the first is plain decoding.
        """
        times = _arguments.decode_times(v, len(self.parents) + 1)
        depths = np.maximum.accumulate(np.concatenate([[0], _depths(self.parents)]))
        rounds = _arguments.round_times(times, draft_step, latency, depths)
        return np.asarray(self.expected_tokens / rounds)


def tree_expected_tokens(parents: Sequence[int], edges: ArrayLike) -> float:
    """1 + the sum over all nodes of the product of the edges on the path from the root: the mean
    number of tokens of a round (Sequoia, section 3.1).

    A chain whose edges are all alpha gives `expected_tokens(alpha, gamma)`.

    Args:
        parents: For each node, the node that it follows, -1 for the root; less than its own number.
        edges: The edge of every node, shape [n_nodes].
    """
    rates = _arguments.floats("edges", edges)
    parents = _arguments.integers("parents", parents)
    if rates.shape != (len(parents),):
        raise ArgumentError(f"edges must be one number for each of the {len(parents)} nodes.")
    below = np.zeros(len(parents) + 1)
    reached = np.ones(len(parents) + 1)  # [node + 1]
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise ArgumentError(f"The parent of node {node} must be from -1 to {node - 1}.")
        below[parent + 1] += rates[node]
        reached[node + 1] = reached[parent + 1] * rates[node]
    if np.any(below > 1 + _ROUNDING):
        raise ArgumentError("The edges below a node must sum to at most 1: only one can be right.")
    return float(reached.sum())


def best_tree(edges: ArrayLike, n_nodes: int) -> BestTree:
    """Return the trees of 0 to n_nodes nodes with the most expected tokens, if the edge of a
    candidate depends only on its depth and rank.

    The node with the highest product of edges on its path is added next. No node has a higher
    product than its parent, so the first g nodes are the best g for every g (Sequoia, section 3.1,
    by dynamic programming; EAGLE-2, section 4.2, for edges that differ from node to node).

    Args:
        edges: [depth, rank], from 0: the probability that the candidate of this rank is right if
            the tokens before its position are, shape [n_depths, n_ranks]. There are no deeper
            nodes.
        n_nodes: Most nodes, 0 or more, at most as many as `edges` allows.
    """
    rates = _arguments.floats("edges", edges)
    if rates.ndim != 2 or np.any(rates.sum(axis=-1) > 1 + _ROUNDING):
        raise ArgumentError("edges must have shape [n_depths, n_ranks] and rows of sum at most 1.")
    n_nodes = _check.integer("n_nodes", n_nodes, low=0, high=_arguments.MAX_GAMMA)
    n_depths, n_ranks = rates.shape
    parents: list[int] = []
    ranks: list[int] = []
    gains: list[float] = []
    waiting: list[tuple[float, int, int, int]] = []  # -product, depth, rank, parent

    def open_below(node: int, depth: int, product: float) -> None:
        if depth < n_depths:
            for rank in range(n_ranks):
                heapq.heappush(waiting, (-product * rates[depth, rank], depth, rank, node))

    open_below(-1, 0, 1.0)
    while waiting and len(parents) < n_nodes:
        product, depth, rank, parent = heapq.heappop(waiting)
        parents.append(parent)
        ranks.append(rank)
        gains.append(-product)
        open_below(len(parents) - 1, depth + 1, -product)
    if len(parents) < n_nodes:
        raise ArgumentError(f"n_nodes must be at most {len(parents)}, not {n_nodes}.")
    return BestTree(parents, ranks, 1 + np.concatenate([[0.0], np.cumsum(gains)]))


def _depths(parents: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of nodes on the path to each node, including itself, shape [n_nodes]."""
    depths = np.zeros(len(parents) + 1, np.int64)
    for node, parent in enumerate(parents):
        depths[node + 1] = depths[parent + 1] + 1
    return depths[1:]
