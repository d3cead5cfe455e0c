"""Files with matrices of types that ggml cannot multiply."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from heads import write_eagle3, write_qwen
from random_model import write_dense
from refusals import refusal
from rewriting import rewrite
from specllama import ModelError, SpecSession, _core

Type = gguf.GGMLQuantizationType


def retyped(source: Path, name: str, kind: Type) -> Path:
    """Write a copy in which one tensor has another type; its bytes are zeros."""
    reader = gguf.GGUFReader(source)
    (tensor,) = (one for one in reader.tensors if one.name == name)
    n_in, *n_out = (int(n) for n in tensor.shape)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    data = np.zeros((*n_out[::-1], n_in // block * size), np.uint8)
    rewrite(
        source, target := source.with_suffix(".retyped.gguf"), {}, {name: data}, kinds={name: kind}
    )
    return target


@pytest.mark.parametrize("name", ["blk.1.ffn_gate.weight", "token_embd.weight", "output.weight"])
def test_tensor_types_without_a_kernel_are_refused_in_targets_and_drafts(
    tmp_path: Path, name: str
) -> None:
    sound = write_dense(tmp_path / "sound.gguf")
    broken = retyped(sound, name, Type.Q8_1)
    why = f"its tensor {name} is of type q8_1"
    assert why in refusal(broken, None)
    assert why in refusal(sound, broken)
    with pytest.raises(ModelError, match="is of type"):
        _core.read_model_file(str(broken))


@pytest.mark.parametrize("kind", [Type.Q8_1, Type.Q8_K])
def test_tensor_types_without_a_kernel_are_refused_in_heads(tmp_path: Path, kind: Type) -> None:
    target = write_dense(tmp_path / "target.gguf")
    head = retyped(write_eagle3(tmp_path / "head.gguf"), "fc.weight", Type.Q8_1)
    assert "its tensor fc.weight is of type q8_1" in refusal(target, head)
    mtp = retyped(write_qwen(tmp_path / "mtp.gguf"), "blk.2.nextn.eh_proj.weight", kind)
    assert "its tensor blk.2.nextn.eh_proj.weight is of type" in refusal(mtp, "mtp")


@pytest.mark.parametrize("kind", [Type.F16, Type.BF16, Type.Q4_0, Type.Q5_1, Type.Q8_0])
def test_other_tensor_types_are_accepted(tmp_path: Path, kind: Type) -> None:
    model = retyped(write_dense(tmp_path / "sound.gguf"), "blk.1.ffn_gate.weight", kind)
    with SpecSession(model, n_gpu_layers=0, n_threads=1) as session:
        assert len(session.generate([5, 6, 7], max_tokens=3, ignore_eos=True).tokens) == 3
