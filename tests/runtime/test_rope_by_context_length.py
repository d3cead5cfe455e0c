"""Models such as Phi-3, with other RoPE factors in long contexts than in short ones. A memory with
keys of one kind cannot be reused in a context of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_model import FFN, HEAD, WIDTH, RandomModel, words
from session_options import Open
from specllama import ArgumentError

N_SHORT = 512
"""Up to this context length the short RoPE factors are used, above it the long ones."""

SHORT, LONG = N_SHORT // 2, 2 * N_SHORT
PROMPT = words(40, 1)
AN_ANSWER: dict[str, Any] = {"max_tokens": 30, "logit_bias": {2: -1e9}}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A Phi-3 that does not state its kind of RoPE scaling, like published files."""
    drawn = RandomModel(8)
    for layer in range(2):
        drawn.attention(layer)
        drawn.tensors[f"blk.{layer}.ffn_norm.weight"] = np.ones(WIDTH)
        drawn.tensors[f"blk.{layer}.ffn_up.weight"] = drawn.matrix(2 * FFN, WIDTH)
        drawn.tensors[f"blk.{layer}.ffn_down.weight"] = drawn.matrix(WIDTH, FFN)
    drawn.tensors["rope_factors_short.weight"] = np.ones(HEAD // 2)
    drawn.tensors["rope_factors_long.weight"] = np.full(HEAD // 2, 8.0)
    fields = {"rope.dimension_count": HEAD, "rope.scaling.original_context_length": N_SHORT}
    return drawn.write(tmp_path / "phi3.gguf", "phi3", 2, fields)


def test_n_seq_does_not_change_the_rope_factors(model: Path, open_session: Open) -> None:
    alone = open_session(model, n_ctx=SHORT).generate(PROMPT, **AN_ANSWER).tokens
    assert open_session(model, n_ctx=SHORT, n_seq=4).generate(PROMPT, **AN_ANSWER).tokens == alone
    # The factors do differ.
    assert open_session(model, n_ctx=LONG).generate(PROMPT, **AN_ANSWER).tokens != alone


def test_a_beam_search_leaves_the_long_rope_memory_unchanged(
    model: Path, open_session: Open
) -> None:
    expected = open_session(model, n_ctx=LONG).generate(PROMPT, **AN_ANSWER).tokens
    session = open_session(model, n_ctx=LONG)
    session.beam_search(PROMPT, n_beams=2, max_tokens=20)
    assert session.generate(PROMPT, **AN_ANSWER).tokens == expected


def test_a_state_with_other_rope_factors_is_refused(
    model: Path, open_session: Open, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    short = open_session(model, n_ctx=SHORT)
    short.generate(PROMPT, **AN_ANSWER)
    short.save_state(state)
    short.load_state(state)
    with pytest.raises(ArgumentError):
        open_session(model, n_ctx=LONG).load_state(state)
