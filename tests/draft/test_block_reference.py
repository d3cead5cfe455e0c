"""Drafts of block drafters through llama.cpp, compared with the same drafters in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_model
from block_reference import BlockDrafts
from blocks import BLOCK, KINDS, MASK, TARGETS, block_model, write_block
from random_model import N_VOCAB, WIDTH, RandomModel
from session_options import Open
from specllama import SpecSession

PROMPTS = [[1, *range(5 + i, 40), *range(80, 50, -3 - i)] for i in range(3)]
TOLERANCE = 0.01
EXACT_FLOATS: dict[str, Any] = {"kv_type": "f32", "flash_attn": False}


@pytest.fixture(autouse=True)
def _floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round nothing to Q8_0."""
    monkeypatch.setattr(random_model, "FLOATS", ("weight", "_conv_base"))


def compare(
    session: SpecSession, target: Path, drafter: Path, prompt: list[int], length: int
) -> int:
    """Check the drafts of a generation; how many tokens were."""
    generation = session.generate(prompt, max_tokens=40, trace=True)
    assert generation.stats.drafter_errors == 0, generation.stats.last_drafter_error
    assert generation.trace is not None
    drafts = BlockDrafts(target, drafter, [*prompt, *generation.tokens])
    compared = 0
    for one in generation.trace.rounds:
        if not one.draft:
            continue
        expected = drafts.after(len(prompt) + one.position, length, MASK)
        assert len(one.draft) <= length
        for drafted, reference in zip(one.draft, expected, strict=False):
            if drafted.token != reference.token:  # the two most likely ones are equals
                assert reference.lead < TOLERANCE
                break
            assert drafted.confidence == pytest.approx(reference.confidence, abs=TOLERANCE)
            compared += 1
    return compared


def with_own_tokens(kind: str) -> RandomModel:
    """With embeddings and an output of its own, for every third token."""
    model = block_model(kind)
    known = np.arange(3, N_VOCAB, 3)
    model.tensors["d2t"] = known.astype(np.int64)
    model.tensors["token_embd.weight"] = 4 * model.matrix(N_VOCAB, WIDTH)
    model.tensors["output.weight"] = 3 * model.matrix(len(known), WIDTH)
    if kind == "dspark":
        model.tensors["markov_w2.weight"] = model.matrix(len(known), 32)
    return model


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{kind: (kind, {}) for kind in KINDS},
    "causal": ("dflash", {"attention.causal": True}),
    "one layer of the target, twice": ("dflash", {"target_layers": [1, 1]}),
    "not from the anchor": ("dspark", {"sample_from_anchor": False}),
    "no confidence head": ("dspark", {}),
    "other rotation": ("dflash2", {"rope.freq_base": 500.0}),
}


@pytest.mark.parametrize("architecture", TARGETS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_random_block_drafter_drafts_as_its_numpy_reference(
    tmp_path: Path, open_session: Open, architecture: str, variant: str
) -> None:
    kind, fields = VARIANTS[variant]
    model = block_model(kind)
    if variant == "no confidence head":
        del model.tensors["conf_proj.weight"], model.tensors["conf_proj.bias"]
    target = TARGETS[architecture](tmp_path / "target.gguf")
    drafter = write_block(tmp_path / "draft.gguf", kind, model, **fields)
    from_anchor = kind == "dspark" and variant != "not from the anchor"
    length = BLOCK if from_anchor else BLOCK - 1
    session = open_session(target, drafter, spec_length=64, **EXACT_FLOATS)
    compared = 0
    for prompt in PROMPTS:
        compared += compare(session, target, drafter, prompt, length)
    assert compared > 60


@pytest.mark.parametrize("kind", ["dflash", "dspark"])
def test_a_block_drafter_with_tokens_of_its_own_drafts_as_its_numpy_reference(
    tmp_path: Path, open_session: Open, kind: str
) -> None:
    target = TARGETS["llama"](tmp_path / "target.gguf")
    drafter = write_block(tmp_path / "draft.gguf", kind, with_own_tokens(kind))
    session = open_session(target, drafter, spec_length=3, **EXACT_FLOATS)
    assert compare(session, target, drafter, PROMPTS[0], 3) > 30
