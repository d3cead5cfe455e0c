"""Drafts of block drafters through llama.cpp, compared with the same drafters in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_model
from block_reference import BlockDrafts
from blocks import BLOCK, KINDS, MASK, TARGETS, block_model, write_block, write_target
from random_model import N_VOCAB, WIDTH, RandomModel
from session_options import Open
from specllama import Generation

PROMPT = [1, *range(5, 40), *range(80, 50, -3)]
TOLERANCE = 0.02
EXACT_FLOATS: dict[str, Any] = {"kv_type": "f32", "flash_attn": False}


@pytest.fixture(autouse=True)
def _floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep weights as floats, without Q8_0."""
    monkeypatch.setattr(random_model, "FLOATS", ("weight", "_conv_base"))


def compare(
    generation: Generation, prompt: list[int], target: Path, drafter: Path, length: int
) -> int:
    """Check the drafts of a generation; return how many tokens were compared."""
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
            if reference.edge < 0.1:  # another candidate may take its place
                break
            if drafted.token != reference.token:  # the two most likely ones are equal
                assert reference.lead < TOLERANCE
                break
            assert drafted.confidence == pytest.approx(reference.confidence, abs=TOLERANCE)
            compared += 1
    return compared


def with_own_tokens(kind: str) -> RandomModel:
    """Return a drafter with embeddings and an output layer for every third token."""
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
    "positions with sections": ("dflash", {"rope.dimension_sections": [32, 0, 0, 0]}),
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
    target = write_target(tmp_path / "target.gguf", architecture)
    drafter = write_block(tmp_path / "draft.gguf", kind, model, **fields)
    from_anchor = kind == "dspark" and variant != "not from the anchor"
    length = BLOCK if from_anchor else BLOCK - 1
    session = open_session(target, drafter, spec_length=64, **EXACT_FLOATS)
    generation = session.generate(PROMPT, max_tokens=30, trace=True)
    assert compare(generation, PROMPT, target, drafter, length) > 40


@pytest.mark.parametrize("kind", ["dflash", "dspark"])
def test_a_block_drafter_with_its_own_vocabulary_drafts_as_its_numpy_reference(
    tmp_path: Path, open_session: Open, kind: str
) -> None:
    target = write_target(tmp_path / "target.gguf", "llama")
    drafter = write_block(tmp_path / "draft.gguf", kind, with_own_tokens(kind))
    session = open_session(target, drafter, spec_length=3, **EXACT_FLOATS)
    generation = session.generate(PROMPT, max_tokens=30, trace=True)
    assert compare(generation, PROMPT, target, drafter, 3) > 30


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_earlier_and_concurrent_requests_draft_as_the_numpy_reference(
    tmp_path: Path, open_session: Open, kind: str
) -> None:
    """The prompts: one that continues a text, one that leaves it, several at once that copy from
    each other, and one longer than the drafter processes at once."""
    target = write_target(tmp_path / "target.gguf", "llama")
    drafter = write_block(tmp_path / "draft.gguf", kind)
    session = open_session(target, drafter, spec_length=4, n_seq=3, **EXACT_FLOATS)
    first = session.generate(PROMPT, max_tokens=20)
    longer = [*PROMPT, *first.tokens, 7, 8]
    branch = [*longer[:40], 9, 10, 11]
    long = [*longer, *PROMPT, *PROMPT]
    for prompts in ([longer], [branch], [longer, branch, long], [PROMPT]):
        found = session.generate(prompts, max_tokens=12, trace=True)
        for prompt, generation in zip(prompts, found, strict=True):
            assert compare(generation, prompt, target, drafter, 4) > 15
