"""Multi-token prediction in architectures other than those of test_heads."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_model import architectures, write
from numpy.typing import NDArray
from random_model import words
from specllama import SpecSession

NAMES = [name for name in architectures() if name.endswith(" with prediction")]
NUMBERS: dict[str, Any] = {"kv_type": "f32", "flash_attn": False}
GREEDY: dict[str, Any] = {"max_tokens": 40, "logit_bias": {2: -math.inf}}
PROMPTS = [[1, *words(n, seed=n)] for n in (0, 5, 70, 110)]

Open = Callable[..., SpecSession]


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    architecture: str = request.param
    return architecture


@pytest.fixture(scope="module")
def model(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("models") / "random.gguf", name, architectures()[name])


@pytest.mark.parametrize("options", [{}, {"n_seq": 3}, {"spec_tree": 3}, {"spec_length": "auto"}])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_random_head_changes_no_token(
    model: Path, open_session: Open, options: dict[str, Any], temperature: float
) -> None:
    how = GREEDY | {"temperature": temperature, "seed": 1}
    plain = open_session(model, None, **NUMBERS)
    session = open_session(model, "mtp", **({"spec_length": 3} | NUMBERS | options))
    for prompt, generation in zip(PROMPTS, session.generate(PROMPTS, **how), strict=True):
        assert generation.tokens == plain.generate(prompt, **how).tokens
        assert generation.stats.drafter_errors == 0
        assert generation.stats.by_drafter["model"][0] > 0 or "spec_length" in options


def test_a_head_drafts_as_if_it_had_seen_nothing_else(model: Path, open_session: Open) -> None:
    """What it has taken in of drafts that were wrong is forgotten, and nothing is left out."""
    session = open_session(model, "mtp", spec_length=3, **NUMBERS)
    prompt = PROMPTS[2]
    generation = session.generate(prompt, trace=True, **GREEDY)
    assert generation.trace is not None
    rounds = [one for one in generation.trace.rounds if one.draft]
    assert len(rounds) > 10
    fresh = open_session(model, "mtp", spec_length=3, **NUMBERS)
    for one in rounds:
        # The round that ends a prompt drafts nothing.
        fresh.generate([8], max_tokens=1)
        said = [*prompt, *generation.tokens[: one.position - 1]]
        again = fresh.generate(said, trace=True, **GREEDY | {"max_tokens": 8})
        assert again.stats.reused_tokens == 0
        assert again.trace is not None
        drafted = [token.token for token in again.trace.rounds[1].draft]
        assert drafted[: len(one.draft)] == [token.token for token in one.draft]


def knowing(tensor: str, data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Let nothing but the last token decide what comes, for the target and for its head."""
    if tensor.endswith(("attn_output.weight", "ssm_out.weight")) or ".ffn_down" in tensor:
        return 0 * data
    if tensor.endswith("nextn.eh_proj.weight"):
        width = len(data)
        return np.concatenate([np.eye(width), np.zeros((width, width))], axis=1)
    if tensor.endswith("norm.weight"):
        return 0 * data + 1
    if tensor == "token_embd.weight":  # some heads subtract the mean, where the target does not
        return data - data.mean(axis=1, keepdims=True)
    return data


def test_a_head_that_knows_is_right(name: str, tmp_path: Path, open_session: Open) -> None:
    """States and tokens come to it in step: from prompts, after drafts, and beside others."""
    model = write(tmp_path / "knowing.gguf", name, architectures()[name], knowing)
    for n_seq in (1, 3):
        session = open_session(model, "mtp", spec_length=5, n_seq=n_seq, **NUMBERS)
        for generation in session.generate(PROMPTS, **GREEDY):
            stats = generation.stats
            assert stats.drafter_errors == 0
            assert stats.drafted == stats.accepted > 20
