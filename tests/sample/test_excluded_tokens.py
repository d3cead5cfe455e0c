"""Tokens that XTC and typical sampling exclude: in drafts, with grammars and lenience."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from prompts import PROMPTS
from reference_sampler import sampler
from session_options import Open
from specllama.session import BUNDLED_MODEL

P = np.log(np.array([0.1, 0.4, 0.2, 0.3])).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"xtc_probability": 1.0, "xtc_threshold": 0.25}, {0, 2, 3}),
        ({"typical_p": 0.1}, {3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_lenience_accepts_no_excluded_token(
    options: dict[str, Any], left: set[int], temperature: float
) -> None:
    one = sampler(4, temperature=temperature, acceptance="rejection", lenience=0.3, **options)
    for candidate in range(4):
        draft = np.full(4, -50, np.float32)
        draft[candidate] = 0
        found = one.speculate_many(P, draft, 1, 200, point_mass=True)
        assert set(found[:, -1].tolist()) <= left


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_alternatives_exclude_tokens_as_the_first_choice_does(temperature: float) -> None:
    """Each is the next choice after all earlier ones are forbidden."""
    row = np.log(np.array([0.3, 0.25, 0.2, 0.15, 0.06, 0.04])).astype(np.float32)
    one = sampler(6, temperature=temperature, xtc_probability=1.0, xtc_threshold=0.12)
    found = one.speculate_many(row, row, 1, 200, n_guesses=4)
    assert set(found.ravel().tolist()) == {-1, 3, 4, 5}  # three are left
    if temperature == 0:
        assert found[0].tolist() == [3, 4, 5, -1, 3]


@pytest.mark.parametrize("name", ["top_p", "typical_p", "xtc_probability"])
def test_generated_tokens_have_finite_logprobs_with_truncation(
    name: str, open_session: Open
) -> None:
    """Also if a grammar refused the first choice."""
    options: dict[str, Any] = {name: 0.5, "temperature": 1.0, "logprobs": 3, "max_tokens": 30}
    session = open_session(draft="ngram")
    for seed in range(8):
        found = session.generate(
            PROMPTS["module"], seed=seed, grammar=r"root ::= ([ (]{1,2} [a-z0-9]+)+",
            processed_logprobs=True, **options,
        )  # fmt: skip
        assert found.logprobs
        assert all(math.isfinite(one.logprob) for one in found.logprobs)
        assert all(one.top[0][1] >= one.logprob for one in found.logprobs)


def test_dry_and_xtc_apply_to_the_draft_model(open_session: Open) -> None:
    """The target drafts for itself with the same samplers, so all drafts are accepted."""
    session = open_session(draft=BUNDLED_MODEL, spec_length=4)
    options: dict[str, Any] = {
        "dry_multiplier": 4.0, "dry_penalty_last_n": -1, "dry_sequence_breakers": ["e", "\n"],
        "xtc_probability": 0.5, "xtc_threshold": 0.05, "temperature": 0.8, "ignore_eos": True,
    }  # fmt: skip
    found = session.generate(PROMPTS["module"], max_tokens=60, seed=3, **options)
    drafted, accepted = found.stats.by_drafter["model"]
    assert drafted == accepted > 30
