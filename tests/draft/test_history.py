"""The history of earlier requests: what it keeps, what it finds, and for which owner."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from specllama._core import History
from specllama._core.plan import HistoryFollower
from specllama.errors import ArgumentError

N_MOST = 64
"""Most tokens of a match that count, and of a draft."""


def words(rng: random.Random, n: int, low: int = 0, high: int = 50) -> list[int]:
    return [rng.randrange(low, high) for _ in range(n)]


def copied(history: History, text: Sequence[int], n: int = N_MOST, owner: int = 0) -> list[int]:
    return [one.token for one in history.predict(text, n, owner=owner)]


def follows(texts: Sequence[Sequence[int]], end: Sequence[int], copy: Sequence[int]) -> bool:
    """Return whether a text contains `end` and then `copy`."""
    wanted = [*end, *copy]
    return any(
        list(text[i : i + len(wanted)]) == wanted
        for text in texts
        for i in range(len(text) - len(wanted) + 1)
    )


def longest(texts: Sequence[Sequence[int]], end: Sequence[int]) -> int:
    """Return how many of the last tokens are in a text, with another token after them."""
    n = 0
    while n < min(len(end), N_MOST) and follows(texts, end[len(end) - n - 1 :], []):
        if not any(follows([text[:-1]], end[len(end) - n - 1 :], []) for text in texts):
            break
        n += 1
    return n


def test_history_copies_what_followed_the_longest_match() -> None:
    rng = random.Random(1)
    for _ in range(40):
        history = History(1024)
        texts = [words(rng, rng.randrange(1, 60), high=12) for _ in range(8)]
        for text in texts:
            history.append(text)
        for _ in range(20):
            end = words(rng, 3, high=12) + rng.choice(texts)[: rng.randrange(30)]
            found = history.predict(end, N_MOST)
            expected = longest(texts, end)
            assert (found[0].length if found else 0) == (expected if expected >= 4 else 0)
            if found:
                n = found[0].length
                assert follows(texts, end[len(end) - n :], [one.token for one in found])


def test_a_history_copy_ends_with_its_text() -> None:
    history = History(1024)
    history.append([1, 2, 3, 4, 5, 6])
    history.append([7, 8, 9])
    assert copied(history, [1, 2, 3, 4]) == [5, 6]
    assert copied(history, [3, 4, 5, 6]) == []
    assert copied(history, [5, 6, 7, 8]) == []
    assert copied(history, [1, 2, 3]) == []


def test_history_prefers_the_most_frequent_continuation_then_the_latest() -> None:
    history = History(1024)
    for last in (5, 6, 6, 7):
        history.append([1, 2, 3, 4, last])
    assert copied(history, [1, 2, 3, 4]) == [6]
    history.append([1, 2, 3, 4, 7])
    assert copied(history, [1, 2, 3, 4]) == [7]


def test_history_drops_the_oldest_texts_first() -> None:
    history = History(1024)
    texts = [[1000 * i + j for j in range(100)] for i in range(30)]
    for text in texts:
        history.append(text)
        assert history.n_tokens <= 1024
    held = [text for text in texts if copied(history, text[:50], 40) == text[50:90]]
    assert 8 <= len(held) <= 10
    assert all(text in texts[-11:] for text in held)
    assert [token for text in history.texts() for token in text] == [
        token for text in texts for token in text
    ][-sum(map(len, history.texts())) :]


def test_history_keeps_the_end_of_a_text_longer_than_itself() -> None:
    history = History(1024)
    text = list(range(5000))
    history.append(text)
    assert copied(history, text[4900:4950], 40) == text[4950:4990]
    assert copied(history, text[:3000]) == []
    assert [token for part in history.texts() for token in part] == text[-1023:]


def test_history_copies_nothing_from_another_owner() -> None:
    """The texts begin alike; each owner continues with tokens of another range."""
    rng = random.Random(2)
    history = History(2048)
    shared = [words(rng, 8) for _ in range(4)]
    written: dict[int, list[list[int]]] = {owner: [] for owner in range(3)}
    n_found = 0
    for _ in range(600):
        owner = rng.randrange(3)
        text: list[int] = []
        for _ in range(rng.randrange(1, 5)):
            text += rng.choice(shared)
            text += words(rng, rng.randrange(40), 1000 * (owner + 1), 1000 * (owner + 1) + 20)
        history.append(text, owner=owner)
        written[owner].append(text)
        asked = rng.randrange(3)
        end = rng.choice(shared)
        copy = copied(history, end, owner=asked)
        n_found += bool(copy)
        assert not copy or follows(written[asked], end[-4:], copy)
        assert not copied(history, end, owner=7)
    assert n_found > 300
    assert sum(len(history.texts(owner=owner)) for owner in range(4)) > 0
    for owner, texts in written.items():
        assert all(follows(texts, part, []) for part in history.texts(owner=owner))


def test_a_history_copy_does_not_continue_in_the_text_that_replaces_its_own() -> None:
    rng = random.Random(3)
    n_drafted = 0
    for _ in range(30):
        history = History(1024)
        mine = list(range(600))
        history.append(mine, owner=0)
        follower = HistoryFollower(history, mine[:100], owner=0)
        for at in range(100, 500, 50):
            drafted = [token for token, _ in follower.draft(N_MOST)]
            assert drafted == mine[at : at + len(drafted)]
            n_drafted += len(drafted)
            follower.append_batch(mine[at : at + 50])
            history.append(words(rng, rng.randrange(300), 5000, 9000), owner=1)
        assert all(token < 600 for token, _ in follower.draft(N_MOST))
    assert n_drafted > 0


def test_history_stores_a_conversation_that_grows_only_once() -> None:
    rng = random.Random(4)
    history = History(100_000)
    conversation: list[int] = []
    for turn in range(1, 21):
        conversation += words(rng, 400, high=30_000)
        history.append(conversation)
        assert history.n_tokens <= len(conversation) + turn * (N_MOST + 2)
        for at in range(100, len(conversation) - N_MOST, 333):
            expected = conversation[at : at + 8]
            assert copied(history, conversation[:at], 8) == expected


def test_history_adds_a_known_text_again_before_dropping_it() -> None:
    rng = random.Random(5)
    history = History(4096)
    text = words(rng, 500, high=30_000)
    for _ in range(20):
        history.append(text)
        history.append(words(rng, 700, high=30_000))
        assert copied(history, text[:200], 40) == text[200:240]


def test_a_history_copy_resumes_after_a_differing_token() -> None:
    history = History(1024)
    text = list(range(100, 200))
    history.append(text)
    follower = HistoryFollower(history, text[:50])
    assert [token for token, _ in follower.draft(4)] == text[50:54]
    follower.append_batch([*text[50:53], 7])  # text[53] is replaced
    assert follower.draft(4) == []
    follower.append_batch([text[54]])
    assert [(token, one.length) for token, one in follower.draft(2)] == [
        (text[55], 1),
        (text[56], 2),
    ]


def test_bad_history_arguments_are_refused() -> None:
    for n in (1023, (1 << 28) + 1, -1):
        with pytest.raises(ArgumentError, match=f"max_tokens must be from 1024 to .*, not {n}"):
            History(n)
    history = History(1024)
    with pytest.raises(ArgumentError, match="0 or more"):
        history.append([1, -1])
    assert history.n_tokens == 0
    for n in (-1, 65):
        with pytest.raises(ArgumentError, match="from 0 to 64"):
            history.predict([1, 2, 3, 4], n)
