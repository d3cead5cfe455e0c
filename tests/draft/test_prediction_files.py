"""MTP layers (multi-token prediction) in a file of their own, next to their model's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures, has_states, write
from prediction_files import write_own, write_side, write_without
from random_model import words
from session_options import EXACT_HERE, Open
from specllama import ModelError, SpecSession
from specllama.model.found import look

WITH_MTP = [name for name in architectures() if name.endswith(" with prediction")]
GREEDY: dict[str, Any] = {"max_tokens": 40, "logit_bias": {2: -math.inf}}
PROMPT = [1, *words(70, seed=70)]


def numbers_for(name: str) -> dict[str, Any]:
    if has_states(name):
        return {"kv_type": "f32", "flash_attn": False, "draft_kv_type": "f32"}
    return {"exact": EXACT_HERE, "draft_kv_type": "f32"}


def drafts(session: SpecSession) -> tuple[list[int], list[list[int]]]:
    """Return the generated tokens and all drafts."""
    generation = session.generate(PROMPT, trace=True, **GREEDY)
    assert generation.stats.drafter_errors == 0
    assert generation.trace is not None
    drafted = [[t.token for t in one.draft] for one in generation.trace.rounds]
    return generation.tokens, drafted


@pytest.mark.parametrize("name", WITH_MTP)
def test_a_file_of_prediction_layers_drafts_like_those_in_the_models_file(
    name: str, tmp_path: Path, open_session: Open
) -> None:
    side, own = write_side(tmp_path, name), write_own(tmp_path, name)
    expected = drafts(open_session(own, "mtp", spec_length=3, **numbers_for(name)))
    assert sum(map(len, expected[1])) > 10
    for target in (own, write_without(tmp_path, name)):
        session = open_session(target, side, spec_length=3, **numbers_for(name))
        assert drafts(session) == expected


def test_a_file_of_prediction_layers_is_refused_as_a_model(tmp_path: Path) -> None:
    name = "qwen35moe with prediction"
    side = write_side(tmp_path, name)
    with pytest.raises(ModelError, match="a file of multi-token prediction layers, which drafts"):
        SpecSession(side, None, n_ctx=128)
    found = look(side)
    assert found.error is None
    assert found.could_draft_for(look(write_without(tmp_path, name)))
    assert not found.could_draft_for(found)


def test_prediction_layers_of_another_model_are_refused(tmp_path: Path) -> None:
    name = "cohere2moe with prediction"
    side = write_side(tmp_path, name)
    entry = architectures()["qwen3"]
    other = write(tmp_path / "other.gguf", "qwen3", entry)
    shallow = architectures()["cohere2moe with prediction"]
    values = shallow["values"] | {"block_count": 4}
    tensors = {key.replace(",4.", ".").replace("blk.4", "blk.3"): shape
               for key, shape in shallow["tensors"].items()}  # fmt: skip
    shorter = write(tmp_path / "shorter.gguf", name, {"values": values, "tensors": tensors})
    for target, why in ((other, "drafts for cohere2moe models"), (shorter, "has 4 layers, but")):
        with pytest.raises(ModelError, match=why):
            SpecSession(target, side, n_ctx=128)
        assert not look(side).could_draft_for(look(target))


@pytest.mark.parametrize("tensor", ["ffn_gate.weight", "attn_qkv.weight"])
def test_prediction_layers_with_missing_tensors_are_refused(tmp_path: Path, tensor: str) -> None:
    """llama.cpp would load the file and read the missing tensor."""
    name = "mimo2 with prediction"
    entry = architectures()[name]
    broken = write(
        tmp_path / "broken.gguf", name, entry, kept=lambda found: found != f"blk.4.{tensor}"
    )
    with pytest.raises(ModelError, match="does not support its layer"):
        SpecSession(broken, "mtp", n_ctx=128)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("glm-dsa with prediction", "blk.1.indexer.proj.weight"),
        ("hy_v3 with prediction", "blk.1.ffn_up_exps.weight"),
        ("step35 with prediction", "blk.2.ffn_down_exps.weight"),
        ("mimo2 with prediction", "blk.1.ffn_gate_exps.weight"),
    ],
)
def test_models_without_tensors_that_llama_cpp_does_not_check_are_refused(
    name: str, tensor: str, tmp_path: Path
) -> None:
    entry = architectures()[name]
    broken = write(tmp_path / "broken.gguf", name, entry, kept=lambda found: found != tensor)
    with pytest.raises(ModelError, match=f"its tensor {tensor} is missing"):
        SpecSession(broken, None, n_ctx=128)
