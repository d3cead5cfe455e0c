"""Drafts of heads through llama.cpp, compared with the same heads in numpy."""

from __future__ import annotations

from pathlib import Path

import pytest
import random_model
from head_reference import Drafts
from heads import eagle3_model, few_tokens, write_eagle3
from random_model import HEAD, WIDTH, dense_model, write_dense
from session_options import Open
from specllama import SpecSession

LENGTH = 4
PROMPTS = [[1, *range(5 + i, 40), *range(80, 50, -3 - i)] for i in range(3)]
TOLERANCE = 0.01


def compare(session: SpecSession, target: Path, head: Path, prompt: list[int]) -> int:
    """Check the drafts of a generation; return how many tokens were compared."""
    generation = session.generate(prompt, max_tokens=40, trace=True)
    assert generation.stats.drafter_errors == 0
    assert generation.trace is not None
    drafts = Drafts(target, head, [*prompt, *generation.tokens])
    compared = 0
    for one in generation.trace.rounds:
        expected = drafts.after(len(prompt) + one.position, LENGTH)
        for drafted, (token, believed, lead) in zip(one.draft, expected, strict=False):
            if drafted.token != token:  # the two most likely ones are equal
                assert lead < TOLERANCE
                break
            assert drafted.confidence == pytest.approx(believed, abs=TOLERANCE)
            compared += 1
    return compared


@pytest.mark.parametrize("knows_all", [True, False])
def test_a_random_head_drafts_as_its_numpy_reference(
    tmp_path: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch, knows_all: bool
) -> None:
    """States of three layers, one of them twice; several passes; a vocabulary of its own."""
    monkeypatch.setattr(random_model, "FLOATS", ("weight",))  # no weight is rounded to Q8_0
    model = eagle3_model()
    if not knows_all:
        few_tokens(model)
    target = write_dense(tmp_path / "target.gguf")
    head = write_eagle3(tmp_path / "head.gguf", model)
    compared = 0
    for prompt in PROMPTS:  # each in a new session: the head does not see states of reused tokens
        session = open_session(target, head, spec_length=LENGTH, kv_type="f32", flash_attn=False)
        compared += compare(session, target, head, prompt)
    assert compared > 80


def test_a_head_of_train_head_drafts_as_its_numpy_reference(
    tmp_path: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer key and value heads, a reduced vocabulary, and the target's embeddings."""
    monkeypatch.setattr(random_model, "FLOATS", ("weight",))
    target, head = dense_model(seed=1), eagle3_model()
    few_tokens(head)
    del head.tensors["token_embd.weight"]
    for name in ("attn_k", "attn_v"):
        head.tensors[f"blk.0.{name}.weight"] = head.matrix(HEAD, 2 * WIDTH)
        for layer in range(2):
            target.tensors[f"blk.{layer}.{name}.weight"] = target.matrix(HEAD, WIDTH)
    facts = {
        "rope.dimension_count": HEAD,
        "attention.head_count_kv": 1,
        "attention.layer_norm_rms_epsilon": 1e-3,
        "rope.freq_base": 500.0,
    }
    target_path = target.write(tmp_path / "target.gguf", "llama", 2, facts)
    head_path = write_eagle3(tmp_path / "head.gguf", head, **facts)
    compared = 0
    for prompt in PROMPTS:
        session = open_session(
            target_path, head_path, spec_length=LENGTH, kv_type="f32", flash_attn=False
        )
        compared += compare(session, target_path, head_path, prompt)
    assert compared > 80
