"""Files that are not projectors, or not for the model, are refused with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import rewrite
from seeing import open_seeing
from specllama import ModelError, _core
from vision_models import VisionModel, write_gemma3, write_qwen


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    return write_qwen(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    return write_gemma3(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"clip.has_vision_encoder": False}, "encodes neither images nor sounds"),
        ({"clip.projector_type": "hunyuanvl"}, "type hunyuanvl are not supported"),
        ({"clip.projector_type": None}, "projector_type is missing"),
        ({"clip.vision.embedding_length": None}, "embedding_length is missing or not an integer"),
        ({"clip.vision.attention.head_count": 3}, "not a multiple of its 3 attention heads"),
        ({"clip.vision.block_count": 4000}, "block_count is 4000"),
        ({"clip.vision.patch_size": 0}, "patch_size is 0"),
        ({"clip.vision.patch_size": 128}, "patches are larger"),
        ({"clip.vision.image_size": 8000, "clip.vision.patch_size": 1}, "64000000 patches"),
        ({"clip.vision.n_wa_pattern": 1}, "n_wa_pattern is 1, with which no layer"),
        ({"clip.vision.spatial_merge_size": 0}, "spatial_merge_size is 0"),
        ({"clip.vision.image_mean": [0.5]}, "fewer than three numbers"),
        ({"clip.vision.block_count": 3}, "tensor v.blk.2.attn_q.weight is missing"),
    ],
)
def test_projectors_with_damaged_headers_are_refused(
    qwen: VisionModel, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    damaged = tmp_path / "mmproj.gguf"
    rewrite(qwen.projector, damaged, values, {})
    with pytest.raises(ModelError, match=rf"Cannot use .*mmproj.gguf as a projector: .*{why}"):
        _core.read_projector(str(damaged))


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("v.blk.1.attn_k.bias", None, "v.blk.1.attn_k.bias is missing"),
        ("v.blk.1.ln2.weight", None, "v.blk.1.ln2.weight is missing"),
        ("v.patch_embd.weight.1", None, "v.patch_embd.weight.1 is missing"),
        ("mm.0.bias", np.ones(256, np.float16), "mm.0.bias is of type f16"),
        (
            "v.position_embd.weight",
            np.ones((64, 64), np.float16),
            "position_embd.weight is of type f16",
        ),
        ("mm.2.weight", np.ones((128, 64), np.float32), "an assertion of llama.cpp failed"),
        ("mm.2.bias", None, "unable to find tensor mm.2.bias"),
    ],
)
def test_projectors_with_damaged_tensors_are_refused(
    qwen: VisionModel, tmp_path: Path, name: str, data: Any, why: str
) -> None:
    damaged = tmp_path / "mmproj.gguf"
    rewrite(qwen.projector, damaged, {}, {name: data})
    with pytest.raises(ModelError, match=rf"Cannot use .*mmproj.gguf as a projector: .*{why}"):
        open_seeing(VisionModel(qwen.text, damaged))


def test_a_model_file_is_refused_as_a_projector(qwen: VisionModel) -> None:
    with pytest.raises(ModelError, match=r"it is a model \(qwen2vl\); give the file"):
        _core.read_projector(str(qwen.text))


def test_the_projector_of_a_model_of_another_width_is_refused(
    qwen: VisionModel, gemma: VisionModel, tmp_path: Path
) -> None:
    wide = tmp_path / "mmproj.gguf"
    matrix = np.ones((64, 256), np.float32)
    rewrite(gemma.projector, wide, {}, {"mm.input_projection.weight": matrix})
    with pytest.raises(ModelError, match="mismatch between text model"):
        open_seeing(VisionModel(qwen.text, wide))


def test_a_missing_projector_file_is_named(qwen: VisionModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file .*mmproj\.gguf"):
        open_seeing(VisionModel(qwen.text, tmp_path / "mmproj.gguf"))


def test_the_projector_header_gives_its_kinds_of_media_and_its_width(gemma: VisionModel) -> None:
    found = _core.read_projector(str(gemma.projector))
    assert (found.sees, found.hears, found.width) == (True, False, 128)
