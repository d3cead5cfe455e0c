"""Drafts with branches, as a client has them: their chains, what is left of them, their numbers."""

from __future__ import annotations

import random

from specllama._core import Source
from specllama._core.plan import Evidence
from specllama.formats.wire import MOST_TOLD
from specllama.remote.draft import Branch, Chain, Draft, joined
from specllama.remote.tree import Tree


def chain(*tokens: int) -> Chain:
    return Chain(
        list(tokens), [Evidence(Source.other, confidence=token / 1000) for token in tokens]
    )


def draft(*chains: Chain) -> Draft:
    return joined(iter(chains))


def chains_of(one: Draft) -> list[list[int]]:
    return [tokens for tokens, _ in one.chains()]


def test_chains_join_to_a_main_path_and_branches() -> None:
    one = draft(chain(), chain(1, 2, 3), chain(1, 2), chain(1, 5, 6), chain(4), chain(1, 2, 3, 7))
    assert one.tokens == [1, 2, 3]
    told = [(branch.depth, branch.tokens) for branch in one.branches]
    assert told == [(1, [5, 6]), (0, [4]), (3, [7])]
    assert chains_of(one) == [[1, 2, 3], [1, 5, 6], [4], [1, 2, 3, 7]]


def test_a_draft_after_accepted_tokens_keeps_the_remaining_chains() -> None:
    one = draft(chain(1, 2, 3), chain(1, 5, 6, 7), chain(1, 5, 8), chain(4))
    assert chains_of(one.after([])) == chains_of(one)
    assert chains_of(one.after([1])) == [[2, 3], [5, 6, 7], [5, 8]]
    assert chains_of(one.after([1, 5])) == [[6, 7], [8]]
    assert one.after([1, 5]).evidence[0].confidence == chain(6).evidence[0].confidence
    for gone in ([1, 2, 3], [4], [9], [1, 9], [1, 5, 6, 7, 8]):
        assert not one.after(gone).tokens
    assert one.foreseen([1, 5, 6, 9]) == 3
    assert one.agreed([1, 5, 6, 9]) == 1


def test_a_draft_sent_to_a_server_has_a_bounded_size() -> None:
    one = draft(chain(*range(1, 65)), *(chain(*range(i, i + 64)) for i in range(100, 900, 100)))
    body, evidence = one.told()
    assert len(evidence) == MOST_TOLD
    assert len(body["draft"]) + sum(len(branch) - 1 for branch in body["branches"]) == MOST_TOLD
    assert draft(chain(1, 2)).told()[0] == {"draft": [1, 2]}


def test_a_tree_has_its_main_path_first() -> None:
    others = [draft(chain(1, 2), chain(1, 3, 4)), draft(chain(5, 6))]
    tree = Tree(others[1], others, guesses=2)
    assert tree.tokens == [5, 6, 1, 2, 3, 4]
    assert tree.parents == [-1, 0, -1, 2, 2, 4]
    assert tree.depths == [0, 1, 0, 1, 1, 2]
    assert tree.ranks == [0, 0, 1, 0, 1, 0]
    assert [parent for _, parent in tree.sides] == [-1, 2, 2, 4]
    assert tree.path([1, 3, 9]) == [2, 4]
    assert [tree.n_aside(path) for path in ([], [0, 1], [2, 4])] == [0, 0, 2]
    assert Tree(others[1], others, guesses=1).tokens == [5, 6]
    assert Tree(Draft(), others, guesses=3).tokens == []


def test_judged_rows_follow_the_accepted_path() -> None:
    """Of guesses at one position each once those before it were wrong."""
    tree = Tree(draft(chain(1, 2), chain(3, 4), chain(5)), guesses=3)
    assert list(tree.judged([1, 2])) == []
    assert list(tree.judged([3, 9])) == [(0, True), (1, False)]
    assert list(tree.judged([5, 9])) == [(0, False), (2, True)]
    assert list(tree.judged([9])) == [(0, False), (2, False)]


def test_a_pruned_tree_becomes_a_draft_again() -> None:
    """Whatever is kept of it, as long as each has what it comes after."""
    rng = random.Random(2)
    for _ in range(300):
        chains = [chain(*rng.choices(range(1, 4), k=rng.randrange(1, 6))) for _ in range(5)]
        tree = Tree(draft(*chains), guesses=3)
        kept: set[int] = set()
        for node, parent in enumerate(tree.parents):
            if (parent < 0 or parent in kept) and rng.random() < 0.7:
                kept.add(node)
        again = Tree(tree.draft(kept), guesses=3)
        found = {tuple(path_of(again, node)) for node in range(len(again.tokens))}
        assert found == {tuple(path_of(tree, node)) for node in kept}


def path_of(tree: Tree, node: int) -> list[int]:
    path = []
    while node >= 0:
        path.append(tree.tokens[node])
        node = tree.parents[node]
    return path[::-1]


def test_a_branch_can_continue_the_end_of_the_main_path() -> None:
    one = Draft([1], chain(1).evidence, [Branch(1, [2], chain(2).evidence)])
    tree = Tree(one, guesses=2)
    assert tree.parents == [-1, 0]
    assert tree.n_aside(tree.path([1, 2])) == 0  # the target has it in its trunk, too
