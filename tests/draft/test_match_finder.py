"""MatchFinder, compared with a short, independent reference."""

from __future__ import annotations

import random
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from specllama import ArgumentError, MatchFinder, SpecSession


class Reference:
    """The definition: compares with every position, every time."""

    def __init__(self, max_tokens: int = 1 << 22) -> None:
        self.max_tokens = max_tokens
        self.tokens: list[int] = []
        self.first = 0  # earlier tokens are forgotten

    def append(self, token: int) -> None:
        if len(self.tokens) - self.first == self.max_tokens:
            self.first += self.max_tokens // 2
        self.tokens.append(token)

    def truncate(self, n: int) -> None:
        del self.tokens[n:]
        self.first = min(self.first, n)

    def predict(self, n: int, text: list[int] | None = None) -> list[tuple[int, int]]:
        searched = self.tokens
        suffix = (self.tokens[self.first :] if text is None else text)[-64:]
        found: list[tuple[int, int]] = []  # (length, next position), the latest first
        for position in range(len(searched) - 1, self.first, -1):
            length = 0
            while (
                length < min(len(suffix), position - self.first)
                and searched[position - 1 - length] == suffix[-1 - length]
            ):
                length += 1
            if length >= 4:
                found.append((length, position))
        if not found:
            return []
        found = found[:32]
        length, _ = max(found)
        longest = [position for one, position in found if one == length]
        counts = Counter(searched[position] for position in longest)
        best = max(longest, key=lambda position: (counts[searched[position]], position))
        copy = searched[best:] if text is not None else list(searched[best:])
        if text is None:
            while len(copy) < n:
                copy.append(copy[len(copy) - (len(searched) - best)])
        return [(token, length + i) for i, token in enumerate(copy[:n])]


def as_tuples(finder: MatchFinder, n: int, text: list[int] | None = None) -> list[tuple[int, int]]:
    return [(matched.token, matched.length) for matched in finder.predict(n, text)]


def real_tokens(name: str) -> list[int]:
    text = (Path(sysconfig.get_paths()["stdlib"]) / name).read_text()
    with SpecSession(draft=None, n_gpu_layers=0, n_threads=1) as session:
        return session.tokenize(text)


def check(tokens: list[int], every: int = 1, max_tokens: int = 1 << 22) -> None:
    finder, reference = MatchFinder(max_tokens=max_tokens), Reference(max_tokens)
    n_found = 0
    for i, token in enumerate(tokens):
        finder.append(token)
        reference.append(token)
        if i % every == 0:
            expected = reference.predict(8)
            n_found += bool(expected)
            assert as_tuples(finder, 8) == expected, i
    assert n_found > len(tokens) // every // 20


@pytest.mark.parametrize("n_distinct", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_matches_in_random_tokens_equal_the_reference(n_distinct: int, seed: int) -> None:
    rng = random.Random(f"{n_distinct} {seed}")
    check([int(n_distinct * rng.random() ** 2) for _ in range(400)])


@pytest.mark.parametrize("n_distinct", [50, 100_000])
@pytest.mark.parametrize("seed", range(4))
def test_matches_in_copied_tokens_equal_the_reference(n_distinct: int, seed: int) -> None:
    rng = random.Random(f"{n_distinct} {seed}")
    tokens = [rng.randrange(n_distinct) for _ in range(50)]
    while len(tokens) < 400:
        start = rng.randrange(len(tokens) - 20)
        tokens += tokens[start : start + rng.randrange(3, 20)]
        tokens += [rng.randrange(n_distinct) for _ in range(rng.randrange(3))]
    check(tokens)


def test_matches_in_real_text_equal_the_reference() -> None:
    check(real_tokens("textwrap.py")[:1500], every=7)


@pytest.mark.parametrize("period", [1, 2, 7])
def test_matches_in_periodic_texts_continue_without_end(period: int) -> None:
    tokens = [i % period for i in range(300)]
    check(tokens)
    finder = MatchFinder()
    finder.append_batch(tokens)
    assert [matched.token for matched in finder.predict(64)] == [
        i % period for i in range(300, 364)
    ]
    # The period is over. A match needs four tokens that occurred before.
    finder.append_batch([8, 9, *range(4), 8, 9])
    assert finder.predict() == []
    finder.append_batch([0 % period, 1 % period])
    assert as_tuples(finder, 1) == ([(2, 4)] if period > 1 else [])


def test_a_match_at_the_end_continues_into_its_own_prediction() -> None:
    finder = MatchFinder()
    finder.append_batch([9, 1, 2, 3, 1, 2, 3, 1])
    assert as_tuples(finder, 7) == [
        (2, 4), (3, 5), (1, 6), (2, 7), (3, 8), (1, 9), (2, 10),
    ]  # fmt: skip


def test_the_longest_then_most_frequent_then_latest_match_is_chosen() -> None:
    finder = MatchFinder()
    finder.append_batch([7, 1, 2, 3, 4, 50, 8, 1, 2, 3, 4, 60, 8, 7, 1, 2, 3, 4])
    assert as_tuples(finder, 1) == [(50, 5)]
    finder.truncate(12)
    finder.append_batch([9, 1, 2, 3, 4])
    assert as_tuples(finder, 1) == [(60, 4)]
    finder.append_batch([50, 9, 9, 1, 2, 3, 4])
    assert as_tuples(finder, 1) == [(50, 5)]
    finder.append_batch([60, 5, 1, 2, 3, 4, 60, 6, 1, 2, 3, 4])
    assert as_tuples(finder, 1) == [(60, 4)]


@pytest.mark.parametrize("n_distinct", [2, 6, 1000])
@pytest.mark.parametrize("max_tokens", [64, 150, 1 << 22])
def test_matches_after_truncation_equal_the_reference(n_distinct: int, max_tokens: int) -> None:
    rng = random.Random(f"{n_distinct} {max_tokens}")
    finder, reference = MatchFinder(max_tokens=max_tokens), Reference(max_tokens)
    n_found = 0
    for i in range(1200):
        if rng.random() < 0.1 and reference.tokens:
            n = max(0, len(reference.tokens) - rng.choice([0, 1, 5, 40, 200]))
            finder.truncate(n)
            reference.truncate(n)
        if rng.random() < 0.2 and len(reference.tokens) > 100:
            start = rng.randrange(len(reference.tokens) - 20)
            batch = reference.tokens[start : start + 12]
        else:
            batch = [rng.randrange(n_distinct) for _ in range(rng.randrange(8))]
        finder.append_batch(batch)
        for token in batch:
            reference.append(token)
        assert len(finder) == len(reference.tokens)
        expected = reference.predict(10)
        n_found += bool(expected)
        assert as_tuples(finder, 10) == expected, i
    assert n_found > 10


def test_matches_are_not_found_in_truncated_tokens() -> None:
    finder = MatchFinder()
    finder.append_batch(range(100))
    finder.truncate(50)
    finder.append_batch([70, 71, 72, 73])
    assert finder.predict() == []
    finder.truncate(0)
    finder.append_batch([10, 11, 12, 13])
    assert finder.predict() == []
    assert len(finder) == 4


@pytest.mark.parametrize("max_tokens", [64, 65, 200])
def test_a_full_match_finder_forgets_the_older_half(max_tokens: int) -> None:
    rng = random.Random(max_tokens)
    tokens = [rng.randrange(3) for _ in range(600)]
    check(tokens, max_tokens=max_tokens)
    one, all_at_once = MatchFinder(max_tokens=max_tokens), MatchFinder(max_tokens=max_tokens)
    for token in tokens:
        one.append(token)
    all_at_once.append_batch(tokens)
    for last in range(3):
        one.append(last)
        all_at_once.append(last)
        assert as_tuples(one, 64) == as_tuples(all_at_once, 64)


def test_matches_for_another_text_equal_the_reference() -> None:
    searched = real_tokens("textwrap.py")
    finder, reference = MatchFinder(), Reference()
    finder.append_batch(searched)
    reference.tokens = searched
    text = real_tokens("shlex.py")
    n_found = 0
    for end in range(600):
        expected = reference.predict(8, text[:end])
        n_found += bool(expected)
        assert as_tuples(finder, 8, text[:end]) == expected, end
    assert n_found > 10
    # A copy ends with the text, and the text's end alone has no continuation.
    assert as_tuples(finder, 8, searched[-9:-5])[-1][0] == searched[-1]
    assert finder.predict(8, [*searched[-3:], 4000]) == []
    lonely = MatchFinder()
    lonely.append_batch([1, 2, 3, 4])
    assert lonely.predict(8, [1, 2, 3, 4]) == []
    lonely.append(5)
    assert as_tuples(lonely, 8, [0, 1, 2, 3, 4]) == [(5, 4)]


def test_the_memory_of_a_match_finder_is_bounded() -> None:
    rng = random.Random(1)
    finder = MatchFinder()
    for n in range(1, 30_001):
        finder.append(rng.randrange(1000))
        assert finder.size_bytes <= 16 * n + 1024
    at_once = MatchFinder()
    at_once.append_batch(range(100_000))
    assert at_once.size_bytes <= 10 * 100_000 + 1024
    full = MatchFinder(max_tokens=1000)
    full.append_batch(range(100_000))
    assert full.size_bytes <= 16 * 1000 + 1024
    assert len(full) == 100_000


def test_short_texts_give_no_match() -> None:
    finder = MatchFinder()
    assert finder.predict() == []
    assert finder.predict(4, [1, 2, 3, 4]) == []
    finder.append_batch([5, 5, 5])
    assert finder.predict() == []
    assert finder.predict(4, []) == []
    finder.append_batch([5, 5])
    assert finder.predict(0) == []
    assert as_tuples(finder, 2) == [(5, 4), (5, 5)]


def test_finding_matches_does_not_change_the_finder() -> None:
    finder = MatchFinder()
    finder.append_batch([1, 2, 3, 4, 5, 1, 2, 3, 4])
    before = as_tuples(finder, 64)
    assert len(before) == 64
    assert as_tuples(finder, 64) == before


def test_bad_match_finder_arguments_are_refused() -> None:
    for max_tokens in (63, -1, 2**31 + 1):
        with pytest.raises(ArgumentError, match="max_tokens"):
            MatchFinder(max_tokens=max_tokens)
    finder = MatchFinder()
    finder.append_batch([1, 2, 3])
    with pytest.raises(ArgumentError, match="0 or more"):
        finder.append(-1)
    with pytest.raises(ArgumentError, match="0 or more"):
        finder.append_batch([1, -2])
    for n in (4, -1):
        with pytest.raises(ArgumentError, match="from 0 to 3"):
            finder.truncate(n)
    for n in (65, -1):
        with pytest.raises(ArgumentError, match="from 0 to 64"):
            finder.predict(n)
    assert len(finder) == 3
