"""The n-gram drafter, compared with its two parts combined in Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import PROMPTS
from session_options import Open
from specllama import Drafter, MatchFinder, NGramPredictor
from specllama._core import Source
from specllama._core.plan import Evidence, NGramFollower


class Match(NamedTuple):
    """The length of a match, its text, and the index of the token that follows it."""

    length: int
    text: list[int]
    next: int


class Twin(Drafter):
    """Drafts by frequency until a match can be copied: from the sequence itself or, if the match is
    longer there, from the reference. After a copy broke off, it resumes at that position or up to 8
    tokens later, unless another context is longer."""

    def __init__(self, reference: list[int]) -> None:
        self.reference = reference
        self.n_resumed = 0

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.known: list[int] = []
        self.frequencies = NGramPredictor()
        self.frequencies.update_batch(self.reference)
        self.others = MatchFinder()
        self.others.append_batch(self.reference)
        self.copied: Match | None = None
        self.broken: Match | None = None
        for token in prompt.tolist():
            self.follow(token)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        for token in tokens.tolist()[len(self.known) :]:
            self.follow(token)
        if self.copied:
            return self.say(self.known, self.copied, max_tokens)
        predicted = [one.token for one in self.frequencies.predict(max_tokens)]
        for n in range(1, len(predicted) + 1):
            text = self.known + predicted[:n]
            if match := self.best(text):
                return predicted[:n] + self.say(text, match, max_tokens - n)
        return predicted

    def follow(self, token: int) -> None:
        copied = self.copied
        if copied and copied.next < len(copied.text) and copied.text[copied.next] == token:
            self.copied = Match(min(copied.length + 1, 64), copied.text, copied.next + 1)
        else:
            self.broken, self.copied = copied or self.broken, None
        self.known.append(token)
        self.frequencies.update(token)
        if self.copied:
            return
        self.copied = self.best(self.known)
        near = self.near()
        order = max((one.order for one in self.frequencies.predict(1)), default=1)
        if near and near.length >= max(self.copied.length if self.copied else 0, order - 1):
            self.n_resumed += self.copied is None
            self.copied = near

    def best(self, sequence: list[int]) -> Match | None:
        """Return the longest match that is long enough for the finders."""
        own = MatchFinder()
        own.append_batch(sequence)
        mine, other = own.predict(64), self.others.predict(64, sequence)
        is_mine = bool(mine) and (not other or mine[0].length >= other[0].length)
        if not (mine or other):
            return None
        said = [one.token for one in (mine if is_mine else other)]
        length = (mine if is_mine else other)[0].length
        # The finder does not return the position.
        text = sequence if is_mine else self.reference
        places = [
            i
            for i in range(length, len(text))
            if text[i - length : i] == sequence[-length:]
            and all(token == wanted for token, wanted in zip(text[i:], said, strict=False))
        ]
        return Match(length, self.known if is_mine else text, places[-1])

    def near(self) -> Match | None:
        """Return the longest match near the position where the last copy broke off."""
        best = None
        if self.broken:
            _, text, place = self.broken
            for i in range(place, min(place + 9, len(text))):
                length = 0
                while length < min(64, i, len(self.known)) and (
                    text[i - 1 - length] == self.known[-1 - length]
                ):
                    length += 1
                if length > (best.length if best else 0):
                    best = Match(length, text, i)
        return best

    def say(self, sequence: list[int], match: Match, n: int) -> list[int]:
        """Return a copy's tokens: to the end of the reference, or repeating the sequence."""
        if match.text is self.reference:
            return self.reference[match.next : match.next + n]
        ahead = sequence[match.next :]
        return [ahead[i % len(ahead)] for i in range(n)]


@pytest.mark.parametrize("spec_length", [3, 16])
@pytest.mark.parametrize("with_reference", [False, True])
def test_the_ngram_drafter_proposes_the_same_as_its_parts_in_python(
    open_session: Open,
    plain_tokens: dict[str, list[int]],
    spec_length: int,
    with_reference: bool,
) -> None:
    session = open_session(draft="ngram", spec_length=spec_length)
    n_resumed = 0
    for name in list(PROMPTS)[:4]:
        # Other tokens in between make copies end and begin.
        said = [token if i % 23 < 18 else i for i, token in enumerate(plain_tokens[name])]
        reference = said if with_reference else []
        twin = Twin(reference)
        expected = open_session(draft=twin, spec_length=spec_length).generate(
            PROMPTS[name], max_tokens=150
        )
        drafted = session.generate(PROMPTS[name], max_tokens=150, reference=reference)
        assert drafted.tokens == expected.tokens == plain_tokens[name][:150]
        assert expected.stats.drafter_errors == 0
        assert drafted.stats.by_round == expected.stats.by_round
        assert drafted.stats.accepted > 20
        n_resumed += twin.n_resumed
    assert n_resumed > 0


def test_the_token_that_broke_off_a_copy_has_no_confidence() -> None:
    follower = NGramFollower()
    for value in (101, 102):
        follower.append_batch([1, 2, 3, 4, 5, value, 6, 7, 8, 9, 10])
    follower.append_batch([1, 2, 3, 4, 5])
    draft = follower.draft(10)
    assert [token for token, _ in draft] == [102, 6, 7, 8, 9, 10, 1, 2, 3, 4]
    # The second record has 102 where the first has 101; the other tokens were predicted.
    assert [evidence.confidence for _, evidence in draft] == [0] + 9 * [1]
    assert [evidence.length for _, evidence in draft] == list(range(10, 20))


def test_a_broken_copy_resumes_nearby() -> None:
    follower = NGramFollower(reference=[1, 2, 3, 4, 5, 6, 7, 8, 9])
    follower.append_batch([50, 7, 51, 1, 2, 3, 4])
    assert follower.draft(2)[0][0] == 5
    follower.append_batch([60, 61, 7])  # replaces 5 and 6; 51 usually follows 7
    assert [token for token, _ in follower.draft(4)] == [8, 9]
    follower.append_batch([62, 50])  # not near that position
    assert [token for token, _ in follower.draft(1)] == [7]


def paths(tree: list[tuple[int, Evidence, int]]) -> list[list[int]]:
    """Return the path to every node, the node included."""
    found: list[list[int]] = []
    for token, _, parent in tree:
        found.append([*(found[parent] if parent >= 0 else []), token])
    return found


def test_other_matches_become_branches_of_a_copy() -> None:
    follower = NGramFollower()
    for value, after in ((101, 6), (102, 7), (102, 8), (102, 9)):
        follower.append_batch([1, 2, 3, 4, 5, value, after, 10, 11, 12])
    follower.append_batch([1, 2, 3, 4, 5])
    copied = [token for token, _ in follower.draft(4)]
    assert copied == [102, 9, 10, 11]
    tree = follower.tree(4, 3)
    assert [token for token, _, _ in tree[:4]] == copied
    leaves = [path for path in paths(tree) if len(path) == 4]
    # The longest match first; of equally long ones, the latest.
    assert leaves == [copied, [102, 8, 10, 11], [102, 7, 10, 11], [101, 6, 10, 11]]
    assert all(known.source == Source.match for _, known, _ in tree)
    # The tokens before 101 match the fewest.
    length = {token: known.length for token, known, parent in tree if parent == -1}
    assert length == {102: 8, 101: 5}
    assert [token for token, _, parent in follower.tree(4, 1) if parent in (-1, 0)] == [
        102, 9, 8, 101
    ]  # fmt: skip


def test_the_second_most_frequent_token_becomes_a_branch() -> None:
    follower = NGramFollower()
    for i, after in enumerate((7, 7, 7, 8, 8, 9)):
        follower.append_batch([50 + i, 5, after, 30 + after])
    follower.append_batch([60, 5])
    tree = follower.tree(2, 1)
    assert [(token, parent) for token, _, parent in tree[:2]] == [(7, -1), (37, 0)]
    sides = [(token, known.confidence) for token, known, parent in tree[2:] if parent == -1]
    assert sides == [(8, pytest.approx(2 / 6 * 6 / 7))]


def test_branches_are_bounded_and_come_from_real_matches() -> None:
    """Each follows a position that has the same four tokens."""
    rng = np.random.default_rng(3)
    n_beside = 0
    for _ in range(40):
        text = rng.integers(0, 3, 60).tolist()
        follower = NGramFollower()
        follower.append_batch(text)
        trunk = [token for token, _ in follower.draft(6)]
        assert [token for token, _, _ in follower.tree(6, 0)] == trunk
        for most in (1, 2):
            tree = follower.tree(6, most)
            assert [token for token, _, _ in tree[: len(trunk)]] == trunk
            parents = [parent for _, _, parent in tree]
            assert max(parents.count(parent) for parent in set(parents)) <= 1 + most
            n_beside += len(tree) - len(trunk)
            for path, (_, known, _) in zip(paths(tree), tree, strict=True):
                assert len(path) <= 6
                if known.source == Source.match and path != trunk[: len(path)]:
                    whole = text + path
                    context = whole[len(whole) - 1 - min(known.length, len(whole) - 1) : -1]
                    places = [
                        i
                        for i in range(len(context), len(whole) - 1)
                        if whole[i - len(context) : i + 1] == [*context, path[-1]]
                    ]
                    assert places
    assert n_beside > 50
