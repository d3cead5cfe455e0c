"""`specllama models`: the models in the caches, their damages, and possible drafts."""

from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest
from random_model import N_VOCAB, write_dense, write_recurrent
from rewriting import split
from scripted_model import write_scripted_model
from specllama import ModelError, SpecSession, _core
from specllama.__main__ import main
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama_light.local_models import caches
from vision_models import write_gemma3

SNAPSHOTS = "hf/hub/models--org--pair-GGUF/snapshots"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary home directory whose caches are in their usual places."""
    for name in ("HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("specllama.commands.models.installed_model", lambda: None)
    monkeypatch.setattr("specllama_light.local_models._OLLAMA_SERVICE", str(tmp_path / "service"))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path


def put(home: Path, place: str, model: Path) -> Path:
    (path := home / place).parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(model)
    return path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert main(["models", "--json", *arguments]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {record["name"]: record for record in records}


def test_model_file_reports_the_values_of_gguf_py(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(BUNDLED_MODEL)
    file = _core.read_model_file(str(BUNDLED_MODEL))
    assert (file.architecture, file.weight_type) == ("llama", "Q8_0")
    assert file.n_parameters == sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert file.weight_bytes == sum(int(tensor.n_bytes) for tensor in reader.tensors)
    assert file.can_draft
    mamba = _core.read_model_file(str(write_recurrent(tmp_path / "mamba.gguf")))
    assert (mamba.architecture, mamba.n_tokens, mamba.can_draft) == ("mamba", N_VOCAB, False)


def test_vocabulary_fingerprints_are_equal_if_a_session_accepts_the_pair(tmp_path: Path) -> None:
    pieces = ["a", "b", "c"]
    write_scripted_model(target := tmp_path / "target.gguf", pieces)
    for i, (draft, same) in enumerate(
        [(["c", "b", "a"], False), (["a", "b", "d"], False), (["a", "b"], False), (pieces, True)]
    ):
        write_scripted_model(path := tmp_path / f"{i}.gguf", draft, n_ctx=512)
        mine, theirs = (_core.read_model_file(str(file)).vocabulary for file in (target, path))
        assert (mine == theirs) == same
        try:
            SpecSession(target, path, n_gpu_layers=0, n_threads=1).close()
        except ModelError:
            assert not same
        else:
            assert same


def test_models_in_every_cache_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == {}
    target = put(home, f"{SNAPSHOTS}/0123/target-Q8_0.gguf", BUNDLED_MODEL)
    put(home, f"{SNAPSHOTS}/4567/target-Q8_0.gguf", BUNDLED_MODEL)  # another revision, same file
    put(home, f"{SNAPSHOTS}/0123/config.json", BUNDLED_DRAFT)
    draft = put(home, ".cache/llama.cpp/org_draft.gguf", BUNDLED_DRAFT)
    studio = [".lmstudio/models/org/d/d.gguf", ".cache/lm-studio/models/org/m/m.gguf"]
    dense = write_dense(home / "dense.gguf")
    put(home, studio[0], dense)
    put(home, studio[1], write_recurrent(home / "mamba.gguf"))
    found = listed(capsys)
    name = "hf://org/pair-GGUF/target-Q8_0.gguf"
    assert set(found) == {name, str(draft), *(str(home / place) for place in studio)}
    assert found[name] == {
        "name": name,
        "path": str(target),
        "error": None,
        "architecture": "llama",
        "weights": "Q8_0",
        "parameters": _core.read_model_file(str(BUNDLED_MODEL)).n_parameters,
        "bytes": _core.read_model_file(str(BUNDLED_MODEL)).weight_bytes,
        "drafts": [str(draft)],
        "head": "",
        "projector": None,
        "mtp": False,
        "slow_types": "",
    }
    # A larger Mamba of the same vocabulary can have a draft model, but cannot be one.
    drafts = {name: record["drafts"] for name, record in found.items()}
    assert drafts[str(draft)] == []
    assert drafts[str(home / studio[0])] == []
    assert drafts[str(home / studio[1])] == [str(home / studio[0])]


def test_a_projector_is_listed_with_its_model_only(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_gemma3(home)
    other = write_dense(home / "dense.gguf")
    found = listed(capsys, str(home))
    projectors = {name: record["projector"] for name, record in found.items()}
    assert projectors == {str(model.text): str(model.projector), str(other): None}
    assert main(["models", str(home)]) == 0
    assert f"{model.text}, with {model.projector.name}" in capsys.readouterr().out


def test_cache_folders_of_environment_variables_are_searched(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"HF_HUB_CACHE": "a/x.gguf", "LLAMA_CACHE": "b/x.gguf", "XDG_CACHE_HOME": "c/x.gguf"}
    for i, (variable, place) in enumerate(places.items()):
        write_scripted_model(home / f"{i}.gguf", [f"p{i}"])
        put(home, place, home / f"{i}.gguf")
        monkeypatch.setenv(variable, str((home / place).parent))
    put(home, "c/huggingface/hub/y.gguf", home / "2.gguf")
    assert set(listed(capsys)) == {str(home / "a/x.gguf"), str(home / "b/x.gguf")}
    for variable in ("HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE"):
        monkeypatch.delenv(variable)
    assert set(listed(capsys)) == {str(home / "c/huggingface/hub/y.gguf")}


def test_caches_in_an_unknown_home_folder_are_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setenv("LLAMA_CACHE", "~nobody-of-this-name/x")
    assert caches() == [home / "hf" / "hub"]
    monkeypatch.delenv("HF_HOME")
    monkeypatch.delenv("LLAMA_CACHE")
    assert caches() == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert caches() == [home / "huggingface" / "hub", home / "llama.cpp"]


def test_damaged_files_are_listed_with_their_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = BUNDLED_DRAFT.read_bytes()
    bad = {
        "cut": (whole[: len(whole) // 2], "it is cut short: tensor "),
        "header": (whole[:5000], "its header is damaged or cut short"),
        "text": (b"<html>", "it is not a GGUF file"),
        "empty": (b"", "it is empty"),
    }
    (folder := home / "models").mkdir()
    for name, (content, _) in bad.items():
        (folder / f"{name}.gguf").write_bytes(content)
    (folder / "gone.gguf").symlink_to(home / "nowhere")
    os.mkfifo(folder / "pipe.gguf")
    (folder / "sound.gguf").symlink_to(BUNDLED_DRAFT)
    expected = {name: message for name, (_, message) in bad.items()}
    expected |= {"gone": "There is no file", "pipe": "it is not a regular file"}
    found = listed(capsys, str(folder))
    assert len(found) == len(expected) + 1
    for name, message in expected.items():
        assert message in found[str(folder / f"{name}.gguf")]["error"]
    assert main(["models", str(folder)]) == 0
    table = capsys.readouterr().out
    assert "sound.gguf" in table
    for message in expected.values():
        assert message in table


def test_models_command_counts_a_split_model_once(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := home / "models").mkdir()
    parts = split(BUNDLED_DRAFT, folder / "draft.gguf", "llama", 5)
    assert len(parts) > 2
    ((name, record),) = listed(capsys, str(folder)).items()
    whole = _core.read_model_file(str(BUNDLED_DRAFT))
    assert name == str(parts[0])
    assert record["parameters"] == whole.n_parameters
    assert record["bytes"] == whole.weight_bytes
    parts[1].unlink()
    ((_, record),) = listed(capsys, str(folder)).items()
    assert record["error"].startswith(f"Cannot use {parts[0]} as a model: ")
    assert parts[1].name in record["error"]


def test_models_table_lists_models_with_their_drafts(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models"]) == 0
    assert "No models found in the usual folders" in capsys.readouterr().out
    put(home, f"{SNAPSHOTS}/0123/target-Q8_0.gguf", BUNDLED_MODEL)
    put(home, "models/draft.gguf", BUNDLED_DRAFT)
    assert main(["models", str(home / "models")]) == 0
    header, draft, target, _, _ = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["size", "parameters", "architecture", "weights", "drafts", "model"]
    assert draft == ["1", "986kB", "926k", "llama", "Q8_0", "-", str(home / "models/draft.gguf")]
    name = "hf://org/pair-GGUF/target-Q8_0.gguf"
    assert target == ["2", "6.25MB", "5.87M", "llama", "Q8_0", "1", name]


def test_models_command_names_the_searched_folders(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "more").mkdir()
    assert main(["models", str(home / "more")]) == 0
    looked = capsys.readouterr().out.splitlines()[-1]
    assert looked.startswith(f"Searched: {home / 'hf' / 'hub'}, ")
    for place in (".lmstudio/models", ".ollama/models", "more"):
        assert str(home / place) in looked


def test_models_of_ollama_and_of_the_extra_are_listed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / ".ollama/models"
    put(folder, "blobs/sha256-0a", BUNDLED_MODEL)
    model = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:0a"}
    other = {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:0b"}
    contents = {
        "registry.ollama.ai/library/toy/latest": json.dumps({"layers": [other, model]}),
        "registry.ollama.ai/me/toy/small": json.dumps({"layers": [model]}),
        "registry.ollama.ai/me/gone/x": json.dumps({"layers": [model | {"digest": "sha256:0c"}]}),
        "registry.ollama.ai/me/odd/x": "[]",
        "registry.ollama.ai/me/broken/x": "{",
    }
    for place, content in contents.items():
        (path := folder / "manifests" / place).parent.mkdir(parents=True)
        path.write_text(content)
    monkeypatch.setattr("specllama.commands.models.installed_model", lambda: BUNDLED_DRAFT)
    blob = folder / "blobs/sha256-0a"
    assert set(listed(capsys)) == {
        f"{blob} (Ollama's toy:latest)",
        f"{blob} (Ollama's me/toy:small)",
        f"{BUNDLED_DRAFT} (the default of chat and demo)",
    }


def test_models_command_refuses_a_missing_folder(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", str(home / "nowhere")]) == 2
    assert capsys.readouterr().err.strip().endswith(f"There is no directory {home / 'nowhere'}.")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_file_names_that_are_not_utf_8_are_listed_with_an_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(home, os.fsdecode(b"models/caf\xe9.gguf"), BUNDLED_DRAFT)
    put(home, "models/target.gguf", BUNDLED_MODEL)
    records = listed(capsys, str(home / "models"))
    (error,) = (record["error"] for record in records.values() if record["error"])
    assert error.startswith(f"{str(path)!r} has a lone surrogate")
    assert len(records) == 2
    assert main(["corpus", "info", os.fsdecode(b"caf\xe9")]) == 2
    assert "lone surrogate" in capsys.readouterr().err


def test_a_folder_name_that_is_too_long_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "a" * 300]) == 2
    assert "There is no directory a" in capsys.readouterr().err
