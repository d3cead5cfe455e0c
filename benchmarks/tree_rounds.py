"""Simulated rounds that verify trees of drafts. The text is known, and so are the drafters' guesses
at each of its positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from specllama._core import Source
from specllama._core.plan import Evidence, NGramFollower, PlannedRound, Planner
from specllama.simulate import MAX_DRAFT, Curve

SECOND = 0.05  # seconds of a plain decode, as the planner sees it
WRONG = -1  # a token that no text contains


class Guess(NamedTuple):
    """A token that a drafter proposes, and its evidence."""

    token: int
    evidence: Evidence


class Node(NamedTuple):
    """A guess, and its parent in the tree; -1: it follows the text so far."""

    token: int
    evidence: Evidence
    parent: int


@dataclass
class Tree:
    """Nodes. The first n_trunk of them are a chain."""

    nodes: list[Node]
    n_trunk: int

    @classmethod
    def around(cls, trunk: Sequence[Guess]) -> Tree:
        return cls([Node(*guess, at - 1) for at, guess in enumerate(trunk)], len(trunk))

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Tree:
        chain = [node.parent == at - 1 for at, node in enumerate(nodes)]
        return cls([*nodes], chain.index(False) if False in chain else len(chain))

    @property
    def trunk(self) -> list[Guess]:
        return [Guess(node.token, node.evidence) for node in self.nodes[: self.n_trunk]]

    @property
    def sides(self) -> list[tuple[Evidence, int]]:
        return [(node.evidence, node.parent) for node in self.nodes[self.n_trunk :]]

    def child(self, parent: int, token: int) -> int | None:
        return next(
            (at for at, node in enumerate(self.nodes) if node[::2] == (token, parent)), None
        )

    def join(self, other: Tree, siblings: int) -> None:
        """Add the other tree's nodes that this one lacks, up to so many siblings per position."""
        where = {-1: -1}
        for at, node in enumerate(other.nodes):
            if node.parent not in where:
                continue
            parent = where[node.parent]
            same = self.child(parent, node.token) if node.token != WRONG else None
            if same is None:
                if sum(one.parent == parent for one in self.nodes) == siblings:
                    continue
                same = len(self.nodes)
                self.nodes.append(Node(node.token, node.evidence, parent))
            where[at] = same

    def walk(self, text: Sequence[int], rows: set[int]) -> list[int]:
        """Return the rows that are right, each the child of the one before."""
        path: list[int] = []
        for token in text:
            at = self.child(path[-1] if path else -1, token)
            if at is None or at not in rows:
                break
            path.append(at)
        return path

    def hear(self, planned: PlannedRound, offer: int, heard: Sequence[int]) -> int:
        """Tell a round which alternatives were right. Return how many tokens of the trunk are
        right."""
        last, n_right = -1, 0
        for token in heard:
            right = self.child(last, token)
            for at, node in enumerate(self.nodes):
                if node.parent == last and at >= self.n_trunk and (right is None or at <= right):
                    planned.on_alternative(offer, at - self.n_trunk, at == right)
            if right is None:
                break
            n_right += right == n_right
            last = right
        return n_right


@dataclass
class Script:
    """A text and its drafters' guesses.

    Attributes:
        matches: [i]: The n-gram drafter's tree at position i; empty trees: without this drafter.
        model: [i]: A draft model's guesses at position i if all tokens before it are right, the
            likeliest first; empty: without a draft model.
        step: Time of a step of the draft model, in plain decodes.
    """

    n_prompt: int
    text: list[int]
    matches: list[Tree]
    model: list[list[Guess]] = field(default_factory=list)
    step: float = 0.0


def catching_up(curve: Curve, n: int) -> float:
    """Return the cost that n unseen tokens add to a draft model's step, in steps: from the curve,
    and beyond it at the average cost of a row of its widest decode."""
    widest = len(curve) - 1
    wide = float(curve[min(n, widest)] - curve[0])
    return wide + max(n - widest, 0) * float(curve[widest]) / (widest + 1)


def n_gram_trees(prompt: list[int], text: list[int], siblings: int, longest: int) -> list[Tree]:
    follower = NGramFollower()
    follower.append_batch(prompt)
    trees = []
    for i, token in enumerate(text):
        room = min(longest, len(text) - 1 - i) if i > 0 else 0
        nodes = [Node(*node) for node in follower.tree(room, siblings - 1)]
        trees.append(Tree.of(nodes))
        follower.append(token)
    return trees


def drawn_script(n: int, edges: Sequence[float], step: float, rng: np.random.Generator) -> Script:
    """Draw a text for which a draft model's first, second and third guess are right at the rates
    `edges` on average. Its probabilities are exact, and that of the first guess varies as
    Beta(3 e, 3 (1 - e))."""
    first = rng.beta(3 * edges[0], 3 * (1 - edges[0]), n)
    later = np.array(edges[1:]) / (1 - edges[0])
    chances = np.column_stack([first, (1 - first)[:, None] * later])
    right = (rng.random((n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    model = []
    for i in range(n):
        left, guesses = 1.0, []
        for rank, chance in enumerate(chances[i]):
            sure = Evidence(Source.model, 0, float(chance / left))
            guesses.append(Guess(i if rank == right[i] else WRONG, sure))
            left -= chance
        model.append(guesses)
    return Script(32, [*range(n)], [Tree([], 0)] * n, model, step)


def planned_time(script: Script, planner: Planner, curve: Curve, siblings: int) -> float:
    """Return the time of a text's planned rounds, in plain decodes; 1 sibling: chains."""
    regime = planner.begin(0.0, script.n_prompt)
    text = script.text
    time, i, again, seen = 0.0, 0, 0, -script.n_prompt
    while i < len(text):
        position = script.n_prompt + i
        room = min(MAX_DRAFT, len(text) - 1 - i) - again if i > 0 else 0
        trees = [Tree([*script.matches[i].nodes], script.matches[i].n_trunk)]
        planned = PlannedRound(regime, position, n_pending=1 + again, max_draft=room)
        planned.add([guess.evidence for guess in trees[0].trunk])
        planner.choose([planned])
        rest = 0
        spent = 0.0
        if script.model:
            trunk = trees[0].trunk
            planned.n_to_check = planner.n_to_check(planned)
            chain: list[Guess] = []
            beside: list[Node] = []
            while len(chain) < room and planner.should_continue(
                planned, [guess.evidence for guess in chain], SECOND * spent
            ):
                planner.observe_drafting(1, 1, 0, position, SECOND * script.step)
                n_to_check = 0 if chain else planned.n_to_check
                n_unprocessed = max(i + len(chain) - seen, 0) + n_to_check
                spent += script.step * (1 + catching_up(curve, n_unprocessed))
                for checked in [*trunk[:n_to_check], None]:
                    at = i + len(chain)
                    right = _tokens(chain) == text[i:at]
                    guesses = [
                        guess if right else guess._replace(token=WRONG)
                        for guess in script.model[at]
                    ]
                    parent = len(chain) - 1
                    beside += [Node(*guess, parent) for guess in guesses[1:siblings]]
                    chain.append(guesses[0])
                    if len(chain) == room or checked is None or checked.token != chain[-1].token:
                        break
                seen = i + len(chain)
            n_own = len(chain)
            if n_own and _tokens(trunk[:n_own]) == _tokens(chain):
                chain += trunk[n_own:]  # the copy's tokens after these
            rest = len(chain) - n_own
            if n_own:
                own = Tree.around(chain)
                own.nodes += beside
                trees.append(own)
        planned = PlannedRound(
            regime,
            position,
            n_pending=1 + again,
            max_draft=room,
            spent=SECOND * spent,
            without_draft_model=planned.choice if spent else None,
            max_rows=MAX_DRAFT - again,
        )
        for number, tree in enumerate(trees):
            if siblings > 1 and tree.nodes:
                for other in trees:
                    if other is not tree:
                        tree.join(other, siblings)
            sides = tree.sides if siblings > 1 else []
            of_model = {"n_rest": rest, "required": True} if number > 0 else {}
            planned.add([guess.evidence for guess in tree.trunk], **of_model, alternatives=sides)
        planner.choose([planned])
        chosen = trees[max(planned.choice.candidate, 0)]
        path = chosen.walk(text[i:], set(planned.rows)) if planned.choice.n_draft else []
        n_rows = 1 + again + planned.choice.n_draft
        decode = float(curve[n_rows - 1])
        planner.observe_decode(n_rows, position, decode * SECOND)
        time += spent + decode
        heard = text[i : i + len(path) + 1]
        again = sum(at != number for number, at in enumerate(path))
        rights = [tree.hear(planned, number, heard) for number, tree in enumerate(trees)]
        planned.on_result(len(path), rights, n_repeated=again)
        planner.learn(planned)
        i += len(heard)
    return time


def _tokens(guesses: Sequence[Guess]) -> list[int]:
    return [guess.token for guess in guesses]


def fixed_rounds(script: Script, most: int) -> int:
    """Count the rounds that verify the text with at most `most` nodes of the n-gram drafter."""
    rounds = i = 0
    while i < len(script.text):
        tree = script.matches[i]
        rows = set(range(min(most, len(tree.nodes))))
        i += len(tree.walk(script.text[i:], rows)) + 1
        rounds += 1
    return rounds
