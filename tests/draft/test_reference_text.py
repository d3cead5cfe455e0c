"""A reference text gives more accepted drafts and the same tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from prompts import PROMPTS, most_tokens
from session_options import Open
from specllama import ArgumentError
from specllama.session import BUNDLED_DRAFT

PROMPT = PROMPTS["module"]


@pytest.mark.parametrize("spec_length", [4, 16])
def test_a_complete_reference_takes_fewer_rounds(
    open_session: Open, plain_tokens: dict[str, list[int]], spec_length: int
) -> None:
    session = open_session(spec_length=spec_length)
    n_rounds = n_rounds_without = 0
    for name, prompt in PROMPTS.items():
        expected = plain_tokens[name]
        n = most_tokens(session, prompt, 200)
        without = session.generate(prompt, max_tokens=n)
        generation = session.generate(prompt, max_tokens=n, reference=expected)
        assert generation.tokens == without.tokens == expected
        n_rounds += generation.stats.rounds
        n_rounds_without += without.stats.rounds
        # The reference is forgotten with its request.
        again = session.generate(prompt, max_tokens=n)
        assert again.stats.by_round == without.stats.by_round
    assert n_rounds < 0.6 * n_rounds_without


def test_a_reference_can_be_text_or_tokens(
    open_session: Open, plain_tokens: dict[str, list[int]]
) -> None:
    session = open_session()
    text = session.detokenize(plain_tokens["module"])
    by_text = session.generate(PROMPT, max_tokens=100, reference=text)
    tokens = session.tokenize(text, add_special=False)
    by_tokens = session.generate(PROMPT, max_tokens=100, reference=np.array(tokens))
    assert by_text.tokens == by_tokens.tokens == plain_tokens["module"][:100]
    assert by_text.stats.by_round == by_tokens.stats.by_round
    assert by_text.stats.tokens_per_round > 4


def test_misleading_references_change_no_token(
    open_session: Open, plain_tokens: dict[str, list[int]]
) -> None:
    session = open_session(spec_length=8)
    tokens = session.tokenize(PROMPT)
    n_rejected = 0
    for reference in (
        [],
        [5],
        tokens[-4:],
        tokens[-5:] * 3,
        list(range(4096)),
        [7] * 5000,
        "",
        "é",
    ):
        generation = session.generate(PROMPT, max_tokens=60, reference=reference)
        assert generation.tokens == plain_tokens["module"][:60]
        assert generation.stats.drafter_errors == 0
        n_rejected += generation.stats.drafted - generation.stats.accepted
    assert n_rejected > 0


def test_a_reference_changes_no_sampled_token(open_session: Open) -> None:
    options: dict[str, Any] = {"max_tokens": 80, "temperature": 0.8, "seed": 1}
    expected = open_session(draft=None).generate(PROMPT, **options).tokens
    assert len(expected) == 80
    generation = open_session().generate(PROMPT, reference=expected, **options)
    assert generation.tokens == expected
    assert generation.stats.tokens_per_round > 4


@pytest.mark.parametrize("draft", [None, BUNDLED_DRAFT])
def test_sessions_without_ngrams_ignore_the_reference(
    open_session: Open, plain_tokens: dict[str, list[int]], draft: Any
) -> None:
    session = open_session(draft=draft)
    without = session.generate(PROMPT, max_tokens=40)
    generation = session.generate(PROMPT, max_tokens=40, reference=plain_tokens["module"])
    assert generation.tokens == without.tokens
    assert generation.stats.by_round == without.stats.by_round


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (5, "reference must be"),
        (b"bytes", "reference must be"),
        ({1: 2}, "reference must be"),
        ([1.5], r"reference\[0\] must be a whole number"),
        (["a"], r"reference\[0\] must be a whole number"),
        ([1, 4096], "Token 4096 in the reference is out of range"),
        ([-1], "Token -1 in the reference is out of range"),
        ("\ud800", "reference has a lone surrogate"),
    ],
)
def test_bad_references_are_refused(open_session: Open, reference: Any, message: str) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match=message):
        session.generate(PROMPT, reference=reference)
    assert session.generate(PROMPT, max_tokens=5).tokens
