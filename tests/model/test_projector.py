"""Which projector is used with a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from specllama.model import projector
from specllama.model.projector import best_projector, projector_beside

REPOSITORY = [
    "model-BF16.gguf", "model-Q4_K_M.gguf", "model-Q8_0.gguf", "README.md", "mmproj-BF16.gguf",
    "mmproj-Q8_0.gguf", "Q8_0/model-Q8_0-00001-of-00002.gguf", "Q8_0/mmproj-F32.gguf",
    "other/mmproj-Q4_0.gguf",
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("model-BF16.gguf", "mmproj-BF16.gguf"),
        ("model-Q4_K_M.gguf", "mmproj-Q8_0.gguf"),
        ("model-Q8_0.gguf", "mmproj-Q8_0.gguf"),
        ("Q8_0/model-Q8_0-00001-of-00002.gguf", "Q8_0/mmproj-F32.gguf"),
        ("deep/model-Q8_0.gguf", "mmproj-Q8_0.gguf"),
    ],
)
def test_the_nearest_projector_of_a_repository_is_chosen(model: str, expected: str) -> None:
    assert best_projector(REPOSITORY, model) == expected
    assert best_projector(REPOSITORY[:4], model) is None


@pytest.fixture(autouse=True)
def all_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projector, "_fits", lambda projector, model: projector.stat().st_size == 0)


def folder(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    return path


def found_for(path: Path) -> str | None:
    found = projector_beside(str(path))
    return None if found is None else Path(found).name


def test_a_projector_with_the_models_name_is_found_among_others(tmp_path: Path) -> None:
    folder(
        tmp_path, "gemma-3-4b-it-Q4_K_M.gguf", "Qwen2.5-VL-3B-Instruct-Q4_K_M.gguf", "tiny.gguf",
        "mmproj-gemma-3-4b-it-f16.gguf", "Qwen2.5-VL-3B-Instruct-mmproj-Q8_0.gguf",
        "mmproj-model-f16.gguf",
    )  # fmt: skip
    gemma = found_for(tmp_path / "gemma-3-4b-it-Q4_K_M.gguf")
    assert gemma == "mmproj-gemma-3-4b-it-f16.gguf"
    qwen = found_for(tmp_path / "Qwen2.5-VL-3B-Instruct-Q4_K_M.gguf")
    assert qwen == "Qwen2.5-VL-3B-Instruct-mmproj-Q8_0.gguf"
    assert found_for(tmp_path / "tiny.gguf") is None


def test_a_projector_without_a_model_name_belongs_to_the_only_model(tmp_path: Path) -> None:
    names = ("a-Q4_K_M.gguf", "a-Q8_0.gguf", "mtp-a.gguf", "mmproj-F16.gguf", "mmproj-BF16.gguf")
    folder(tmp_path, *names)
    assert found_for(tmp_path / "a-Q8_0.gguf") == "mmproj-BF16.gguf"
    folder(tmp_path, "b-Q8_0.gguf")
    assert found_for(tmp_path / "a-Q8_0.gguf") is None


def test_a_projector_that_does_not_fit_is_ignored(tmp_path: Path) -> None:
    folder(tmp_path, "a-Q8_0.gguf", "mmproj-F16.gguf")
    (tmp_path / "mmproj-F16.gguf").write_bytes(b"another width")
    assert found_for(tmp_path / "a-Q8_0.gguf") is None


def test_parent_folders_are_searched_only_in_the_hubs_cache(tmp_path: Path) -> None:
    place = "models--org--a/snapshots/0123/Q8_0"
    folder(tmp_path, f"{place}/a-Q8_0.gguf", "models--org--a/snapshots/0123/mmproj-F16.gguf")
    assert found_for(tmp_path / place / "a-Q8_0.gguf") == "mmproj-F16.gguf"
    folder(tmp_path, "x/Q8_0/a-Q8_0.gguf", "x/mmproj-F16.gguf")
    assert found_for(tmp_path / "x/Q8_0/a-Q8_0.gguf") is None


def test_a_missing_folder_has_no_projector(tmp_path: Path) -> None:
    assert projector_beside(str(tmp_path / "nothing" / "a.gguf")) is None


def manifest(**digests: str) -> str:
    """What Ollama writes of a model: the files of its parts."""
    layers = [
        {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"}
        for kind, digest in digests.items()
    ]
    return json.dumps({"layers": layers})


def test_ollamas_projector_is_that_of_the_models_manifest(tmp_path: Path) -> None:
    folder(tmp_path, *(f"blobs/sha256-{digest}" for digest in ("0a", "0b", "0c", "0d")))
    manifests = {
        "blind": manifest(model="0a"),
        "seeing": manifest(model="0b", license="0a", projector="0c"),
        "gone": manifest(model="0d", projector="0e"),
        "broken": "{",
    }
    for name, text in manifests.items():
        path = tmp_path / "manifests/registry.ollama.ai/library" / name / "latest"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = {one: found_for(tmp_path / f"blobs/sha256-{one}") for one in ("0a", "0b", "0d")}
    assert found == {"0a": None, "0b": "sha256-0c", "0d": None}
    (tmp_path / "blobs/sha256-0c").write_bytes(b"another width")
    assert found_for(tmp_path / "blobs/sha256-0b") is None
