"""Files that describe the models of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from specllama.__main__ import _make_parser, _parsed
from specllama.commands.presets import read_models
from specllama.errors import ArgumentError
from specllama.server.models.served_model import ModelEntry

LLAMA_CPP = """\
version = 1

; (Optional) for all models
[*]
c = 8192
n-gpu-layers = 8

[ggml-org/MY-MODEL-GGUF:Q8_0]
n-gpu-layers = 123
jinja = true
c = 4096
LLAMA_ARG_CACHE_RAM = 0
model-draft = ./my-models/draft.gguf
chat-template-kwargs = {"enable_thinking": false}
load-on-startup = true
stop-timeout = 5

[custom_model]
model = /models/my-awesome-model-Q4_K_M.gguf
temp = 0.7
ctk = q8_0
ctv = q8_0
parallel = 4
host = 0.0.0.0
"""


def models(*typed: str) -> list[ModelEntry]:
    return read_models(_parsed(["serve", *typed], _make_parser()))


def options(entry: ModelEntry) -> dict[str, Any]:
    """Return the options that the arguments of a model mean."""
    return vars(_parsed(["serve", *entry.arguments], _make_parser()))


def test_preset_files_of_llama_cpp_are_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "models.ini"
    path.write_text(LLAMA_CPP)
    hub, own = models("--models", str(path))
    assert (hub.name, own.name) == ("ggml-org/MY-MODEL-GGUF:Q8_0", "custom_model")
    assert (hub.load_on_startup, own.load_on_startup) == (True, False)
    read = options(hub)
    assert read["model"] == "hf://ggml-org/MY-MODEL-GGUF:Q8_0"
    assert (read["n_ctx"], read["n_gpu_layers"], read["cache_ram"]) == (4096, 123, 0)
    assert read["draft_model"] == "./my-models/draft.gguf"
    assert read["template_args"] == {"enable_thinking": False}
    read = options(own)
    assert read["model"] == "/models/my-awesome-model-Q4_K_M.gguf"
    assert (read["n_ctx"], read["n_gpu_layers"], read["n_seq"]) == (8192, 8, 4)
    assert (read["temperature"], read["kv_type"]) == (0.7, "q8_0")
    assert read["host"] == "127.0.0.1"  # of the server's own command line


def test_toml_preset_files_have_a_table_for_each_model(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        'ctx-size = 2048\n[small]\nmodel = "a.gguf"\ntop-k = 20\n'
        'dry-sequence-breaker = ["x", "y"]\n'
        '[large]\nhf-repo = "user/repo"\nload-on-startup = true\n'
        "[large.chat-template-kwargs]\nenable_thinking = false\n"
    )
    small, large = models("--models", str(path))
    read = options(small)
    assert (read["n_ctx"], read["top_k"]) == (2048, 20)
    assert read["dry_sequence_breakers"] == ["x", "y"]
    read = options(large)
    assert (read["model"], read["template_args"]) == ("hf://user/repo", {"enable_thinking": False})
    assert large.load_on_startup


def test_options_on_the_command_line_override_the_preset_file(tmp_path: Path) -> None:
    path = tmp_path / "models.ini"
    path.write_text("[a]\nmodel = a.gguf\nc = 512\n")
    (entry,) = models("--models", str(path), "-c", "1024", "--port", "0", "--models-max", "1")
    assert options(entry)["n_ctx"] == 1024
    assert "--port" not in entry.arguments


def test_a_models_folder_gives_files_and_split_models(tmp_path: Path) -> None:
    (tmp_path / "b.gguf").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "split").mkdir()
    for name in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "mmproj-F16.gguf"):
        (tmp_path / "split" / name).touch()
    path = tmp_path / "models.ini"
    path.write_text("[b]\ntemp = 0.5\n")
    b, split = models("--models-dir", str(tmp_path), "--models-preset", str(path))
    assert (b.name, b.path) == ("b", tmp_path / "b.gguf")
    assert options(b)["temperature"] == 0.5
    assert (split.name, split.path.name) == ("split", "m-00001-of-00002.gguf")


WRONG = [
    ("", "has no model"),
    ("[*]\nc = 1\n", "has no model"),
    ("[a]\n", r"\[a\]: it has neither a model"),
    ("[a]\nmodel = x\nctx-sise = 1\n", r"\[a\]: there is no option --ctx-sise; did you mean"),
    ("[a]\nmodel = x\nc = many\n", r"\[a\]: argument -c/"),
    ("[a]\nmodel = x\nimage = y\n", r"\[a\]: --image is not supported"),
    ("[a]\nmodel = x\nload-on-startup = 7\n", "load-on-startup must be true or false"),
    ("[a\nmodel = x\n", "is not an INI file"),
    ("just words\n", "is not an INI file"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_bad_preset_files_are_refused_with_one_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "models.ini"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=said) as caught:
        models("--models", str(path))
    assert str(caught.value).endswith(".")


def test_invalid_toml_and_missing_preset_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text("[a")
    with pytest.raises(ArgumentError, match="is not TOML"):
        models("--models", str(path))
    with pytest.raises(ArgumentError, match="cannot be read"):
        models("--models", str(tmp_path / "none.ini"))
    with pytest.raises(ArgumentError, match="Cannot read"):
        models("--models-dir", str(tmp_path / "none"))
