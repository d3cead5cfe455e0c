"""Prompts of spec-cli for models with a chat template, by both programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_model import write_scripted_model
from specllama.commands.spec_cli import executable

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
UNKNOWN = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '\\n' }}"
SCRIPT = "from specllama_light.command import spec_cli; spec_cli()"
PROGRAMS = {"executable": [str(executable())], "console script": [sys.executable, "-c", SCRIPT]}


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAMS[program], "-t", "1", "-ngl", "0", *arguments],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def write(path: Path, template: str | None, pieces: list[str]) -> str:
    controls = ["<|im_start|>", "<|im_end|>"]
    write_scripted_model(
        path, [*pieces], others=controls, control=controls, any_text=True, chat_template=template
    )  # fmt: skip
    return str(path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_chat_template_is_applied_unless_a_flag_disables_it(
    program: str, tmp_path: Path
) -> None:
    model = write(tmp_path / "m.gguf", CHATML, ["\n", "Hi", "!"])
    answer = run(program, "-m", model, "-p", "Hi")
    assert (answer.stdout, answer.stderr, answer.returncode) == ("Hi!", "", 0)
    for flag in ("-no-cnv", "--no-conversation", "--raw"):
        assert run(program, "-m", model, "-p", "Hi", flag).stdout == "!"

    def n_prompt(*arguments: str) -> int:
        process = run(program, "-m", model, "-n", "1", "--json", *arguments)
        return int(json.loads(process.stdout.splitlines()[-1])["stats"]["prompt_tokens"])

    # A control token that a message spells is plain text.
    assert n_prompt("-p", "<|im_end|>") == n_prompt("-p", "<|no_end|>")
    assert n_prompt("-p", "<|im_end|>", "-no-cnv") < n_prompt("-p", "<|no_end|>", "-no-cnv")
    assert n_prompt("-p", "x", "-sys", "y") >= n_prompt("-p", "x") + len("system\ny\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_empty_answer_prints_its_reason(program: str, tmp_path: Path) -> None:
    model = write(tmp_path / "m.gguf", CHATML, ["Hi", "\n"])
    for more, said in (([], "try another prompt"), (["-no-cnv"], "leave out -no-cnv.")):
        process = run(program, "-m", model, "-p", "x\n", *more)
        assert (process.stdout, process.returncode) == ("", 0)
        assert process.stderr.startswith("spec-cli: The model ended its text at once")
        assert said in process.stderr
    assert run(program, "-m", model, "-p", "Hi", "-n", "0", "--raw").stderr == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_system_message_without_a_chat_template_is_refused(program: str, tmp_path: Path) -> None:
    model = write(tmp_path / "m.gguf", None, ["Hi", "!"])
    process = run(program, "-m", model, "-p", "Hi", "-sys", "x")
    assert process.returncode == 2
    assert "-sys needs a model with a chat template" in process.stderr
    process = run(program, "-m", model, "-p", "Hi", "-sys", "x", "-no-cnv")
    assert process.returncode == 2
    assert "-sys needs the chat template" in process.stderr


def test_a_template_unknown_to_llama_cpp_is_rendered_by_the_console_script_alone(
    tmp_path: Path,
) -> None:
    model = write(tmp_path / "m.gguf", UNKNOWN, ["\n", "A", "B"])
    assert run("console script", "-m", model, "-p", "A").stdout == "AB"
    process = run("executable", "-m", model, "-p", "A")
    assert process.stdout == "B"
    assert "does not know this model's chat template" in process.stderr


def test_a_refusal_by_the_chat_template_is_one_sentence(tmp_path: Path) -> None:
    template = "{{ raise_exception('no system messages') }}"
    model = write(tmp_path / "m.gguf", template, ["\n", "A"])
    process = run("console script", "-m", model, "-p", "A")
    assert process.returncode == 2
    assert process.stderr.startswith("spec-cli: The chat template refuses these messages: no sys")
    assert process.stderr.count("\n") == 1
