"""The steps of sampling, compared with llama.cpp's own samplers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray
from reference_sampler import OFF, Row, cut, kept_probabilities, repetitions, sampler
from specllama.session import BUNDLED_MODEL

Chain = list[Any]
"""Samplers of llama.cpp, applied one after another."""


@pytest.fixture(scope="module")
def vocab() -> Iterator[Any]:
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(BUNDLED_MODEL).encode(), parameters)
    assert model
    yield llama_cpp.llama_model_get_vocab(model)
    llama_cpp.llama_model_free(model)


@pytest.fixture(scope="module")
def texts(vocab: Any) -> list[bytes]:
    n_vocab = llama_cpp.llama_vocab_n_tokens(vocab)
    found = []
    for token in range(n_vocab):
        piece = ctypes.create_string_buffer(256)
        length = llama_cpp.llama_token_to_piece(vocab, token, piece, len(piece), 0, True)
        found.append(piece.raw[:length])
    return found


@contextmanager
def freed(chain: Chain) -> Iterator[None]:
    try:
        yield
    finally:
        for one in chain:
            llama_cpp.llama_sampler_free(one)


def applied(chain: Chain, logits: Row) -> dict[int, float]:
    """Return the logits of the tokens that a chain keeps: not removed, not minus infinity."""
    data = (llama_cpp.llama_token_data * len(logits))()
    for token, logit in enumerate(logits):
        data[token] = llama_cpp.llama_token_data(token, float(logit), 0.0)
    left = llama_cpp.llama_token_data_array(data, len(logits), -1, False)
    for one in chain:
        llama_cpp.llama_sampler_apply(one, ctypes.byref(left))
    found = [left.data[i] for i in range(left.size)]
    return {one.id: one.logit for one in found if one.logit > -math.inf}


def chain_of(o: dict[str, Any]) -> Chain:
    """Return llama.cpp's truncating samplers, in its order."""
    steps = [
        llama_cpp.llama_sampler_init_top_n_sigma(o["top_n_sigma"]),
        llama_cpp.llama_sampler_init_top_k(o["top_k"]),
        llama_cpp.llama_sampler_init_typical(o["typical_p"], 0),
        llama_cpp.llama_sampler_init_top_p(o["top_p"], 0),
        llama_cpp.llama_sampler_init_min_p(o["min_p"], 0),
    ]
    if o["xtc_probability"] == 1:
        steps.append(llama_cpp.llama_sampler_init_xtc(1.0, o["xtc_threshold"], 0, 0))
    return steps


def some_cut(rng: np.random.Generator) -> dict[str, Any]:
    def maybe(value: Any, off: Any) -> Any:
        return value if rng.random() < 0.4 else off

    # llama.cpp's top-n-sigma leaves logits of minus infinity, which have no entropy. So typical_p
    # is not combined with it.
    top_n_sigma = maybe(float(rng.uniform(0.3, 3)), 0.0)
    typical_p = maybe(float(rng.uniform(0.05, 0.99)), 1.0)
    return OFF | {
        "temperature": 1.0,
        "top_n_sigma": top_n_sigma,
        "top_k": maybe(int(rng.integers(1, 60)), 0),
        "typical_p": 1.0 if top_n_sigma > 0 else typical_p,
        "top_p": maybe(float(rng.uniform(0.05, 0.99)), 1.0),
        "min_p": maybe(float(rng.uniform(0, 0.5)), 0.0),
        "xtc_probability": maybe(1.0, 0.0),
        "xtc_threshold": float(rng.uniform(0.01, 0.45)),
    }


def test_samplers_keep_the_tokens_of_llama_cpps_chain() -> None:
    rng = np.random.default_rng(5)
    n_cut = 0
    for case in range(400):
        logits = rng.normal(0, rng.choice([0.5, 3]), 50).astype(np.float32)
        o = some_cut(rng)
        chain = chain_of(o)
        with freed(chain):
            theirs = applied(chain, logits)
        p = kept_probabilities(logits, [0], o)
        assert set(theirs) == set(np.flatnonzero(p).tolist()), (case, o)
        n_cut += len(theirs) < len(logits)
        draws = sampler(len(logits), **o).choose_many(logits, 1, 50)
        assert set(draws.tolist()) <= set(theirs), (case, o)
    assert n_cut > 300


def test_the_greedy_choice_is_the_most_likely_kept_token() -> None:
    rng = np.random.default_rng(6)
    n_others = 0
    for case in range(300):
        logits = rng.normal(0, 2, 50).astype(np.float32)
        o = some_cut(rng) | {"temperature": 0.0}
        chain = chain_of(o)
        with freed(chain):
            theirs = applied(chain, logits)
        likeliest = max(theirs, key=lambda token: theirs[token])
        assert sampler(len(logits), **o).choose(logits, [0]) == likeliest, (case, o)
        n_others += likeliest != int(np.argmax(logits))
        if o["xtc_probability"] == 0:
            assert likeliest == cut(logits, o)[0]
    assert n_others > 30


def dry(vocab: Any, context: list[int], logits: Row, o: dict[str, Any]) -> NDArray[np.float64]:
    """Return llama.cpp's DRY penalty for each logit."""
    breakers = [breaker.encode() for breaker in o["dry_sequence_breakers"]]
    one = llama_cpp.llama_sampler_init_dry(
        vocab, o["dry_multiplier"], o["dry_base"], o["dry_allowed_length"],
        o["dry_penalty_last_n"], (ctypes.c_char_p * len(breakers))(*breakers), len(breakers),
    )  # fmt: skip
    with freed([one]):
        for token in context:
            llama_cpp.llama_sampler_accept(one, token)
        left = applied([one], logits)
    return np.array([float(logits[token]) - left[token] for token in range(len(logits))])


def test_dry_penalties_equal_llama_cpps(vocab: Any, texts: list[bytes]) -> None:
    """The breakers are tokens, because llama.cpp finds these as exactly as texts."""
    rng = np.random.default_rng(7)
    n_vocab = len(texts)
    newline = next(i for i, text in enumerate(texts) if text == b"\n")
    common = [newline, *rng.choice(n_vocab, 4, replace=False).tolist()]
    n_penalised = n_broken = 0
    for case in range(200):
        logits = rng.normal(0, 1, n_vocab).astype(np.float32)
        context = rng.choice(common, rng.integers(2, 60), p=[0.15, 0.4, 0.3, 0.1, 0.05]).tolist()
        o = OFF | {
            "dry_multiplier": float(rng.uniform(0.5, 3)),
            "dry_base": float(rng.uniform(1, 2)),
            "dry_allowed_length": int(rng.integers(1, 4)),
            "dry_penalty_last_n": int(rng.choice([20, 100])),
            "dry_sequence_breakers": ["\n"] if case % 2 else [],
        }
        theirs = dry(vocab, context, logits, o)
        expected = np.zeros(n_vocab)
        for token, length in repetitions(context, texts, o).items():
            grown = o["dry_base"] ** (length - o["dry_allowed_length"])
            expected[token] = o["dry_multiplier"] * grown
        assert np.allclose(theirs, expected, atol=1e-4, rtol=1e-4), (case, o)
        n_penalised += bool((expected > 0).any())
        n_broken += repetitions(context, texts, o) != repetitions(
            context, texts, o | {"dry_sequence_breakers": []}
        )
        # The most likely token, if all tokens that may be penalised are favoured.
        favoured = logits.copy()
        favoured[common] += 10
        best = int(np.argmax(favoured.astype(np.float64) - theirs))
        assert sampler(n_vocab, texts, **o).choose(favoured, context) == best, (case, o)
    assert n_penalised > 100
    assert n_broken > 20
