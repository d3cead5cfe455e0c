"""Requests in any order, with snapshots in the memory. A request reuses what an earlier one left
only if no other decode has moved it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from near_ties import tie
from numpy.typing import NDArray
from random_model import N_VOCAB, WINDOW, WRITERS, words, write_hybrid_with_snapshots
from rewriting import rewrite
from session_options import Open
from specllama import Drafter, Generation, Stream

OPTIONS: dict[str, Any] = {"kv_type": "f16", "flash_attn": "auto", "n_ctx": 512}
AN_ANSWER: dict[str, Any] = {"logit_bias": {1: -1e9, 2: -1e9}, "logprobs": 20}
NEAR = 0.15
"""Nats: rounding that a state carries along; with a wrong state, tokens differ by more."""


class Knows(Drafter):
    """Drafts the right tokens of all texts."""

    def __init__(self) -> None:
        self.texts: list[list[int]] = []

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        n, begun = len(tokens), tokens.tolist()
        texts = (text for text in self.texts if text[:n] == begun and len(text) > n)
        return next(texts, begun)[n : n + max_tokens]


def prompt(texts: list[list[int]], rng: random.Random) -> list[int]:
    """Return a prompt that begins like one of the texts, up to nearly its end or any position."""
    text = rng.choice(texts)
    end = len(text) - rng.randrange(5) if rng.random() < 0.7 else rng.randrange(1, len(text))
    return [*text[: max(end, 1)], *(rng.randrange(3, N_VOCAB) for _ in range(rng.randint(1, 2)))]


def is_the_same(found: Generation, expected: Generation) -> bool:
    distance = tie(expected, found.tokens)
    return distance is None or distance < NEAR


@pytest.mark.parametrize("seed", [*range(20), 3436, 4254])  # seeds that found defects
@pytest.mark.parametrize("kind", ["hybrid with snapshots", "delta net"])
def test_requests_in_any_order_get_their_own_tokens_with_snapshots(
    open_session: Open, tmp_path: Path, kind: str, seed: int
) -> None:
    model = WRITERS[kind](tmp_path / "random.gguf")
    rng, drafter = random.Random(seed), Knows()
    plain = open_session(model, None, **OPTIONS)
    session = open_session(model, drafter, n_seq=rng.randint(3, 5), **OPTIONS)
    texts = [[rng.randrange(3, N_VOCAB) for _ in range(n)] for n in (12, 40)]
    running: list[tuple[Stream, Generation, list[int]]] = []
    for _ in range(40):
        if len(running) < session.n_seq and rng.random() < 0.35:
            asked = prompt(texts, rng)
            options = AN_ANSWER | {"max_tokens": rng.choice([6, 11, 16, 21, 60])}
            expected = plain.generate(asked, **options)
            drafter.texts.append([*asked, *expected.tokens])
            running.append((session.stream(asked, **options), expected, asked))
        for _ in range(rng.randint(1, 5) if running else 0):
            next(rng.choice(running)[0], None)
        for stream, expected, asked in [one for one in running if one[0].finish_reason]:
            running = [one for one in running if one[0] is not stream]
            assert is_the_same(stream.result(), expected)
            texts.append([*asked, *expected.tokens])


@pytest.mark.parametrize("seed", range(3))
def test_sliding_windows_with_snapshots_give_the_same_tokens(
    open_session: Open, tmp_path: Path, seed: int
) -> None:
    """Two requests have the same prompt, whose beginning has left the window."""
    fields = {"attention.sliding_window": WINDOW}
    model = write_hybrid_with_snapshots(tmp_path / "random.gguf", **fields)
    asked, options = words(200, seed), AN_ANSWER | {"max_tokens": 30}
    expected = open_session(model, None, **OPTIONS).generate(asked, **options)
    session = open_session(model, None, n_seq=2, **OPTIONS)
    first = session.stream(asked, **options)
    next(first)
    second = session.stream(asked, **options)
    for stream in (second, first):
        for _ in stream:
            pass
        assert is_the_same(stream.result(), expected)


@pytest.mark.parametrize("draft", [None, "ngram"])
@pytest.mark.parametrize("kind", ["hybrid with snapshots", "delta net"])
def test_the_shortest_contexts_are_filled_with_snapshots(
    open_session: Open, tmp_path: Path, kind: str, draft: Any
) -> None:
    """llama.cpp limits a batch to the context, and needs more rows in it than snapshots."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    for n_ctx in range(2, 20):
        session = open_session(model, draft, **OPTIONS | {"n_ctx": n_ctx, "n_batch": 64})
        assert len(session.generate([5], max_tokens=-1, **AN_ANSWER).tokens) == n_ctx - 1
        session.close()


def test_a_model_with_a_context_of_8_tokens_fills_it(open_session: Open, tmp_path: Path) -> None:
    model = write_hybrid_with_snapshots(tmp_path / "whole.gguf")
    rewrite(model, short := tmp_path / "short.gguf", {"lfm2.context_length": 8}, {})
    session = open_session(short)
    assert session.n_ctx == 8
    assert len(session.generate([5], max_tokens=-1, **AN_ANSWER).tokens) == 7
