"""Log-probabilities, compared with llama-cpp-python's logits, with every drafter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from prompts import PROMPTS
from session_options import Open
from specllama import ArgumentError, SpecSession
from specllama.session import BUNDLED_DRAFT

PROMPT = PROMPTS["module"]


def test_logprobs_are_those_of_the_models_logits(open_session: Open, bundled_model: Path) -> None:
    session = open_session()
    tokens = session.tokenize(PROMPT)
    generation = session.generate(tokens, max_tokens=30, logprobs=5, temperature=0.8, seed=1)
    llama = llama_cpp.Llama(
        str(bundled_model), n_ctx=512, type_k=llama_cpp.GGML_TYPE_Q8_0,
        type_v=llama_cpp.GGML_TYPE_Q8_0, flash_attn=True, n_gpu_layers=0, n_threads=1,
        n_threads_batch=1, logits_all=True, verbose=False,
    )  # fmt: skip
    llama.eval(tokens + generation.tokens)
    assert len(generation.logprobs) == len(generation.tokens) == 30
    for i, (token, found) in enumerate(zip(generation.tokens, generation.logprobs, strict=True)):
        logits = llama.scores[len(tokens) - 1 + i].astype(np.float64)
        expected = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        assert found.token == token
        assert found.logprob == pytest.approx(expected[token], abs=1e-5)
        best = np.argsort(-expected, kind="stable")[:5]
        assert [t for t, _ in found.top] == best.tolist()
        assert [p for _, p in found.top] == pytest.approx(expected[best].tolist(), abs=1e-5)
    llama.close()


@pytest.mark.parametrize("processed", [False, True])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "top_k": 20, "top_p": 0.9}])
def test_drafts_change_no_logprob(
    open_session: Open, settings: dict[str, Any], processed: bool
) -> None:
    def generate(session: SpecSession) -> list[tuple[int, float, list[tuple[int, float]]]]:
        generation = session.generate(
            PROMPT, max_tokens=60, seed=2, logprobs=3, processed_logprobs=processed, **settings
        )
        assert (generation.stats.accepted > 0) == (session is not plain)
        return [(one.token, one.logprob, one.top) for one in generation.logprobs]

    plain = open_session(draft=None)
    expected = generate(plain)
    assert len(expected) == 60
    assert generate(open_session(spec_length=8)) == expected
    assert generate(open_session(draft=BUNDLED_DRAFT)) == expected


def test_processed_logprobs_are_the_sampled_distribution(open_session: Open) -> None:
    session = open_session()
    options: dict[str, Any] = {"max_tokens": 40, "seed": 3, "logprobs": 100}
    cut = session.generate(
        PROMPT, temperature=1.5, top_k=4, processed_logprobs=True, **options
    ).logprobs
    own = session.generate(PROMPT, temperature=1.5, top_k=4, **options).logprobs
    for after, before in zip(cut, own, strict=True):
        assert len(after.top) == 4
        assert sum(math.exp(p) for _, p in after.top) == pytest.approx(1, abs=1e-5)
        # The same four tokens at another temperature.
        assert [t for t, _ in after.top] == [t for t, _ in before.top[:4]]
        ratio = (before.top[0][1] - before.top[3][1]) / 1.5
        assert after.top[0][1] - after.top[3][1] == pytest.approx(ratio, abs=1e-4)
    greedy = session.generate(PROMPT, processed_logprobs=True, **options).logprobs
    assert {one.logprob for one in greedy} == {0.0}


def test_chunks_have_logprobs(open_session: Open) -> None:
    session = open_session()
    chunks = list(session.stream(PROMPT, max_tokens=20, logprobs=0))
    assert all(chunk.logprobs is not None and chunk.logprobs.top == [] for chunk in chunks)
    assert [c.logprobs.token for c in chunks if c.logprobs] == [c.token for c in chunks]
    assert {c.logprobs for c in session.stream(PROMPT, max_tokens=20)} == {None}
    assert session.generate(PROMPT, max_tokens=20).logprobs == []


def test_logprobs_are_cut_off_with_the_tokens_of_a_stop_string(open_session: Open) -> None:
    session = open_session()
    whole = session.generate(PROMPT, max_tokens=60)
    cut = session.generate(PROMPT, max_tokens=60, stop=whole.text[30:34], logprobs=1)
    assert [one.token for one in cut.logprobs] == cut.tokens


@pytest.mark.parametrize("value", [-2, 101, 1.5, "3", True])
def test_bad_logprobs_are_refused(open_session: Open, value: Any) -> None:
    with pytest.raises(ArgumentError, match="logprobs must be"):
        open_session().generate("x", logprobs=value)


def test_tokens_forbidden_by_a_grammar_are_not_in_top_logprobs(open_session: Open) -> None:
    """Their probability is 0, and JSON has no minus infinity."""
    generation = open_session().generate(
        "x = 1\n",
        max_tokens=8,
        temperature=1.0,
        seed=1,
        logprobs=3,
        processed_logprobs=True,
        grammar='root ::= ("a" | "b") ("x" | "y")',
    )
    assert all(math.isfinite(logprob) for one in generation.logprobs for _, logprob in one.top)
    last = generation.logprobs[-1].top
    assert len(last) == 2
    assert sum(math.exp(logprob) for _, logprob in last) == pytest.approx(1)
