"""NGramPredictor, compared with a short, independent reference."""

from __future__ import annotations

import itertools
import random
import sysconfig
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import pytest
from specllama import ArgumentError, NGramPredictor, SpecSession


class Reference:
    """The definition: every occurrence is stored, and counted for each prediction."""

    def __init__(self, max_order: int, window: int, capacity: int) -> None:
        self.max_order, self.window, self.capacity = max_order, window, capacity
        self.tokens: list[int] = []
        # Per order and context: the positions and tokens that followed; oldest update first.
        self.tables: dict[int, OrderedDict[tuple[int, ...], list[tuple[int, int]]]] = {
            order: OrderedDict() for order in range(2, max_order + 1)
        }

    def update(self, token: int) -> None:
        position = len(self.tokens)
        for order, table in self.tables.items():
            if self.window:
                for context, seen in list(table.items()):
                    seen[:] = [(p, t) for p, t in seen if p > position - self.window]
                    if not seen:
                        del table[context]
            if position < order - 1:
                continue
            context = tuple(self.tokens[position - order + 1 :])
            seen = table.get(context, [])
            if context in table:
                table.move_to_end(context)
            if token not in {t for _, t in seen}:
                while sum(len({t for _, t in s}) for s in table.values()) >= self.capacity:
                    table.popitem(last=False)
            table.setdefault(context, []).append((position, token))
        self.tokens.append(token)

    def predict(self, n: int) -> list[tuple[int, int, float]]:
        tail = list(self.tokens)
        out: list[tuple[int, int, float]] = []
        while len(out) < n:
            for order in range(min(self.max_order, len(tail) + 1), 1, -1):
                seen = self.tables[order].get(tuple(tail[len(tail) - order + 1 :]))
                if seen:
                    break
            else:
                break
            counts = Counter(token for _, token in seen)
            latest = {token: position for position, token in seen}
            token = max(counts, key=lambda t: (counts[t], latest[t]))
            out.append((token, order, round(counts[token] / len(seen), 5)))
            tail.append(token)
        return out


def as_tuples(predictor: NGramPredictor, n: int) -> list[tuple[int, int, float]]:
    return [(p.token, p.order, round(p.frequency, 5)) for p in predictor.predict(n)]


def real_tokens() -> list[int]:
    text = (Path(sysconfig.get_paths()["stdlib"]) / "textwrap.py").read_text()
    with SpecSession(draft=None, n_gpu_layers=0, n_threads=1) as session:
        return session.tokenize(text)


def check(tokens: list[int], max_order: int, window: int, every: int) -> None:
    predictor = NGramPredictor(max_order=max_order, window=window)
    reference = Reference(max_order, window, predictor.capacity)
    n_predicted = 0
    for i, token in enumerate(tokens):
        predictor.update(token)
        reference.update(token)
        if i % every == 0:
            expected = reference.predict(8)
            n_predicted += len(expected)
            assert as_tuples(predictor, 8) == expected, i
    assert n_predicted > len(tokens) // every // 8


@pytest.mark.parametrize("max_order", [2, 3, 4, 8])
@pytest.mark.parametrize("window", [0, 1, 7, 64])
@pytest.mark.parametrize("n_distinct", [2, 5, 50])
def test_ngram_predictions_of_random_tokens_equal_the_reference(
    max_order: int, window: int, n_distinct: int
) -> None:
    rng = random.Random(f"{max_order} {window} {n_distinct}")
    tokens = [int(n_distinct * rng.random() ** 2) for _ in range(400)]
    check(tokens, max_order, window, every=1)


@pytest.mark.parametrize(("max_order", "window"), [(4, 0), (8, 0), (4, 256)])
def test_ngram_predictions_of_real_text_equal_the_reference(max_order: int, window: int) -> None:
    check(real_tokens()[:2500], max_order, window, every=5)


@pytest.mark.parametrize("window", [0, 900])
def test_a_full_ngram_table_forgets_the_oldest_contexts(window: int) -> None:
    predictor = NGramPredictor(max_order=3, window=window, max_bytes=65536)
    reference = Reference(3, window, predictor.capacity)
    assert 100 < predictor.capacity < 700
    rng = random.Random(5)
    n_evicting = 0
    for i in range(2500):
        # Long stretches repeat, so that predictions also meet forgotten contexts.
        token = (i * i) % 613 if i % 400 < 300 else rng.randrange(40)
        predictor.update(token)
        reference.update(token)
        n_evicting += sum(len({t for _, t in s}) for s in reference.tables[3].values()) >= (
            reference.capacity
        )
        if i % 7 == 0:
            assert as_tuples(predictor, 6) == reference.predict(6), i
        assert predictor.size_bytes < 65536 + 4096
    assert window or n_evicting > 500


def test_one_context_can_fill_the_ngram_table() -> None:
    predictor = NGramPredictor(max_order=2, max_bytes=65536)
    reference = Reference(2, 0, predictor.capacity)
    for i in range(predictor.capacity + 50):
        for token in (0, i + 1):
            predictor.update(token)
            reference.update(token)
    predictor.update(0)
    reference.update(0)
    assert as_tuples(predictor, 3) == reference.predict(3)


def test_the_memory_of_ngram_tables_is_bounded() -> None:
    rng = random.Random(1)
    predictor = NGramPredictor(max_bytes=1 << 20)
    predictor.update_batch([rng.randrange(100_000) for _ in range(200_000)])
    assert predictor.size_bytes < (1 << 20) + 4096
    predictor.update_batch([1, 2, 3] * 10)
    assert [p.token for p in predictor.predict(5)] == [1, 2, 3, 1, 2]


def test_the_published_ngram_example_is_predicted() -> None:
    the, quick, brown, fox, jumps = range(5)
    predictor = NGramPredictor()
    predictor.update_batch([the, quick, brown, fox, jumps, the])
    assert [p.token for p in predictor.predict()] == [quick, brown, fox, jumps]
    # "the" is known as a context of one token only; later tokens have contexts of up to three.
    assert [p.order for p in predictor.predict()] == [2, 3, 4, 4]


def test_ties_between_ngrams_go_to_the_most_recent() -> None:
    predictor = NGramPredictor(max_order=2)
    predictor.update_batch([7, 1, 7, 2, 7])
    assert predictor.predict(1)[0].token == 2
    assert predictor.predict(1)[0].frequency == 0.5
    predictor.update_batch([1, 7])
    assert predictor.predict(1)[0].token == 1


def test_ngram_update_batch_equals_update_of_each_token() -> None:
    rng = random.Random(3)
    tokens = [rng.randrange(9) for _ in range(500)]
    one, all_at_once = NGramPredictor(window=100), NGramPredictor(window=100)
    for token in tokens:
        one.update(token)
    all_at_once.update_batch(tokens)
    assert as_tuples(one, 64) == as_tuples(all_at_once, 64)


def test_short_texts_give_no_ngram_prediction() -> None:
    predictor = NGramPredictor()
    assert predictor.predict() == []
    predictor.update(5)
    assert predictor.predict() == []
    assert predictor.predict(0) == []


def test_ngram_prediction_does_not_change_the_tables() -> None:
    predictor = NGramPredictor()
    predictor.update_batch([1, 2, 3, 1, 2])
    before = as_tuples(predictor, 64)
    assert len(before) == 64
    assert as_tuples(predictor, 64) == before


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_order": 1}, "ngram_order"),
        ({"max_order": 9}, "ngram_order"),
        ({"window": -1}, "ngram_window"),
        ({"max_bytes": 1000}, "ngram_max_bytes"),
    ],
)
def test_bad_ngram_options_are_refused(options: dict[str, int], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        NGramPredictor(**options)


def test_bad_tokens_for_ngram_tables_are_refused() -> None:
    predictor = NGramPredictor()
    with pytest.raises(ArgumentError, match="0 or more"):
        predictor.update(-1)
    with pytest.raises(ArgumentError, match="0 or more"):
        predictor.update_batch([1, -2])
    with pytest.raises(ArgumentError, match="from 0 to 64"):
        predictor.predict(65)


def test_ngram_frequencies_equal_the_counts() -> None:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    rng = random.Random(11)
    tokens = [rng.choice([0, 0, 0, 1, 1, 2]) for _ in range(300)]
    for a, b in itertools.pairwise(tokens):
        counts[a][b] += 1
    predictor = NGramPredictor(max_order=2)
    predictor.update_batch(tokens)
    (prediction,) = predictor.predict(1)
    following = counts[tokens[-1]]
    assert prediction.frequency == pytest.approx(following[prediction.token] / following.total())
