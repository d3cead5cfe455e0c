"""`specllama chat` in a pipe: messages and commands, line by line."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from folders import DOCS
from heads import write_qwen
from specllama import SpecSession
from specllama.__main__ import main
from specllama.chat.commands import COMMANDS

Script = Callable[..., Path]
PIECES = ["u", ":", "a", "b", "c", "d"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
OPTIONS = ["chat", "-ngl", "0", "-t", "1"]


class Said(NamedTuple):
    """The output of a run."""

    out: str
    err: str


Run = Callable[..., Said]


@pytest.fixture
def model(scripted: Script) -> Path:
    """A model that generates the pieces of `PIECES` after the conversation's last character."""
    return scripted(PIECES, chat_template=TEMPLATE)


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process, with lines as its input."""

    def run(*arguments: str, lines: str | bytes = "", code: int = 0) -> Said:
        typed = lines.encode() if isinstance(lines, str) else lines
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed), "utf-8"))
        assert main([*OPTIONS, *arguments]) == code
        return Said(*capfd.readouterr())

    return run


def test_each_message_is_answered_with_the_conversation_so_far(chat: Run, model: Path) -> None:
    said = chat("-m", str(model), lines="u\n\n/reset\na\n")
    assert said.out == ":abcd\nbcd\n"
    assert said.err.count("tokens/s") == 2
    assert chat("-m", str(model), "--system", "u", "-n", "1", lines="a\n").out == "b\n"
    assert chat("-m", str(model), lines='"""u\nb"""').out == "cd\n"
    assert chat("-m", str(model)).out == ""


def n_prompt(said: str) -> int:
    """Return the number of tokens of the first prompt, from the line after its answer."""
    found = re.search(r"of (\d+) prompt tokens", said)
    assert found, said
    return int(found[1])


def test_prompt_option_asks_one_message_and_ends(chat: Run, model: Path) -> None:
    assert chat("-m", str(model), "-p", "a", lines="never read\n").out == "bcd\n"
    assert chat("-m", str(model), "-sys", "u", "-n", "1", "-p", "a").out == "b\n"
    said = chat("-m", str(model), "-p", "", code=2)
    assert said.err == "specllama: The prompt is empty; give at least one character.\n"
    said = chat("-m", str(model), "-f", "/nowhere.txt", "-p", "a", code=2)
    assert said.err == "specllama: /nowhere.txt cannot be read: No such file or directory.\n"
    said = chat("-m", str(model), "-f", "-", lines="a\n", code=2)
    why = "reads standard input, from which messages are read; give the message with -p"
    assert said.err == f"specllama: -f - {why}.\n"


def test_chat_sends_files_before_the_prompt(chat: Run, smollm2: Path, tmp_path: Path) -> None:
    (path := tmp_path / "x.txt").write_text("a word " * 50)
    options = ("-m", str(smollm2), "-n", "1")
    asked = chat(*options, "-p", "Why?").err
    for arguments, lines in ((("-p", "Why?"), ""), ((), "Why?\n")):
        said = chat(*options, "-f", str(path), *arguments, lines=lines).err
        assert n_prompt(said) > n_prompt(asked) + 100
    command = [sys.executable, "-m", "specllama", *OPTIONS, *options, "-f", "-", "-p", "Why?"]
    process = subprocess.run(
        command, input=b"a word " * 50, capture_output=True, check=True, timeout=60
    )
    assert n_prompt(process.stderr.decode()) > n_prompt(asked) + 100
    unread = [one for one in command if one not in ("-f", "-")]
    process = subprocess.run(unread, input=b"x", capture_output=True, check=True, timeout=60)
    line = b"Standard input is not read; give -f - to read it.\n"
    assert process.stderr.startswith(line)
    process = subprocess.run(command, input=b"\xff", capture_output=True, check=False, timeout=60)
    assert process.returncode == 2
    assert process.stderr.endswith(b"specllama: standard input cannot be read: it is not UTF-8.\n")


def test_chat_reads_pipes_from_process_substitution(chat: Run, smollm2: Path) -> None:
    """As in -f <(command)."""
    options = ("-m", str(smollm2), "-n", "1")
    asked = chat(*options, "-p", "Why?").err
    reader, writer = os.pipe()
    with open(reader), open(writer, "w") as file:
        file.write("a word " * 50)
        file.close()
        said = chat(*options, "-f", f"/dev/fd/{reader}", "-p", "Why?").err
    assert n_prompt(said) > n_prompt(asked) + 100
    command = [sys.executable, "-m", "specllama", *OPTIONS, *options, "-f", "/dev/stdin"]
    process = subprocess.run(
        [*command, "-p", "Why?"], input="a word " * 50,
        capture_output=True, check=True, text=True, timeout=60,
    )  # fmt: skip
    assert n_prompt(process.stderr) > n_prompt(asked) + 100
    assert "is not read" not in process.stderr
    said = chat(*options, "-f", "/dev/stdin", code=2).err
    why = "reads standard input, from which messages are read; give the message with -p"
    assert said == f"specllama: -f /dev/stdin {why}.\n"


def test_chat_template_file_replaces_the_models_template(
    chat: Run, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "own.jinja").write_text("{{ messages[-1].content }}{{ end }}")
    options = ("-m", str(model), "--chat-template-file", str(path))
    assert chat(*options, lines="a\n").out == "bcd\n"
    assert chat(*options, "--chat-template-kwargs", '{"end": "b"}', lines="a\n").out == "cd\n"
    said = chat("-m", str(model), "--chat-template-file", "/nowhere", code=2)
    why = "/nowhere cannot be read: No such file or directory"
    assert said.err == f"specllama: {why}.\n"
    for wrong, why in (("{", "is not JSON: "), ("[]", "must be a JSON object, not '[]'")):
        with pytest.raises(SystemExit, match="2"):
            chat(*options, "--chat-template-kwargs", wrong)
        assert f"--chat-template-kwargs: {why}" in capfd.readouterr().err


def test_chat_drafting_can_be_switched_off(chat: Run, model: Path) -> None:
    for nothing in (("--draft", "none"), ("--no-spec",)):
        assert "Drafting: none" in chat("-m", str(model), *nothing, lines="/draft\n").err


def test_chat_uses_colours_only_on_terminals_unless_requested(chat: Run, scripted: Script) -> None:
    # The model repeats itself, so copies are soon accepted.
    model = str(scripted(PIECES, then=None, chat_template=TEMPLATE))
    options = ("-m", model, "-n", "40", "--spec-length", "4")
    plain = chat(*options, lines="u\n").out
    assert "\x1b" not in plain
    colored = chat(*options, "--color", "on", lines="u\n/color off\n/regen\n").out
    first, second = colored.splitlines()
    assert "\x1b[32m" in first
    assert first.replace("\x1b[32m", "").replace("\x1b[0m", "") == second == plain.strip()


def test_a_saved_conversation_is_continued(chat: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    said = chat("-m", str(model), "--system", "c", lines=f"u\n/save {path}\n/bye\nu\n")
    assert said.out == ":abcd\n"
    turns = [("system", "c"), ("user", "u"), ("assistant", ":abcd")]
    held = json.loads(path.read_text())
    assert [(one["role"], one["content"]) for one in held] == turns
    said = chat("-m", str(model), lines=f"/load {path}\n/system\n/regen\nb\n/save {path}\n")
    assert said.out == ":abcd\ncd\n"
    assert "2 messages loaded from" in said.err
    assert "System message: c\n" in said.err
    contents = [one["content"] for one in json.loads(path.read_text())]
    assert contents == ["c", "u", ":abcd", "b", "cd"]


def test_chat_file_command_adds_files_to_the_next_message(
    chat: Run, smollm2: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"# ``` {name}")
    saved = tmp_path / "talk.json"
    lines = f"/file {tmp_path}/*.py\nWhat is this?\nThanks.\n/save {saved}\n"
    chat("-m", str(smollm2), "-n", "1", lines=lines)
    asked = [one["content"] for one in json.loads(saved.read_text()) if one["role"] == "user"]
    blocks = "\n".join(
        f"{tmp_path}/{name}.py:\n````\n# ``` {name}\n````\n" for name in ("one", "two")
    )
    assert asked == [f"{blocks}\nWhat is this?", "Thanks."]


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_chat_refuses_files_whose_names_are_not_utf_8(
    chat: Run, model: Path, tmp_path: Path
) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a")
    for arguments, lines in (
        ((), f"/file {tmp_path}/*.txt\na\n"),
        (("-f", f"{tmp_path}/*.txt"), "a\n"),
    ):
        said = chat("-m", str(model), *arguments, lines=lines, code=2)
        name = f"'{tmp_path}/\\udcff.txt'"
        assert said.err == (
            f"specllama: {name} cannot be sent: the name is not UTF-8; rename it.\n"
        )
        assert said.out == ""


def test_chat_draft_command_changes_the_drafter(chat: Run, model: Path, smollm2: Path) -> None:
    lines = "u\n/draft none\n/regen\n/stats\n/draft ngram\n/regen\n/draft\n"
    said = chat("-m", str(model), lines=lines)
    assert said.out == ":abcd\n" * 3
    drafters = [line for line in said.err.splitlines() if line.startswith("Drafting: ")]
    assert drafters == ["Drafting: none", "Drafting: n-grams", "Drafting: n-grams"]
    assert "All answers: 10 tokens in " in said.err
    assert "accepted: nothing was drafted" in said.err
    # A model with another vocabulary cannot draft.
    said = chat("-m", str(model), lines=f"/draft {smollm2}\n", code=2)
    assert said.err.endswith("its tokenizer is of another type.\n")


def test_chat_draft_auto_uses_the_models_mtp_layers_or_ngrams(
    chat: Run, bundled_model: Path, tmp_path: Path
) -> None:
    (template := tmp_path / "a.jinja").write_text("{{ bos_token }}")
    lines = "/draft\nu\n/stats\n/draft ngram\n/draft auto\n/draft mtp\n"
    brings = write_qwen(tmp_path / "with.gguf")
    options = ("--chat-template-file", str(template), "-n", "20")
    said = chat("-m", str(brings), *options, lines=lines).err
    layers = "the model's own layers of multi-token prediction"
    assert re.findall("rafting: (.*)", said) == [layers, layers, "n-grams", layers, layers]
    said = chat("-m", str(bundled_model), *options, lines="/draft\n/draft none\n/draft auto\n").err
    assert re.findall("rafting: (.*)", said) == ["n-grams", "none", "n-grams"]


def test_chat_help_lists_every_command(chat: Run, model: Path) -> None:
    said = chat("-m", str(model), lines="/help\n/?\n")
    for command in COMMANDS:
        assert said.err.count(command.usage) == 2
        assert said.err.count(command.brief) == 2
    assert said.out == ""


def test_docs_list_every_chat_command() -> None:
    document = (DOCS / "guides/chat.md").read_text()
    document = document.replace("`", "").replace("\\|", "|")
    for command in COMMANDS:
        assert f"| {command.usage} | {command.brief} |" in document


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("/nonsense\nu\n", "There is no command /nonsense; /help lists them"),
        ("/\n", "There is no command /;"),
        ("/file\n", "/file needs a PATH"),
        ("/file no/such/file\n", "no/such/file cannot be read: No such file"),
        ("/file *.nothing\n", r"No file matches *.nothing"),
        ("/file .\n", "Is a directory"),
        ("/file a\0b\n", "it is not a path"),
        ("/file /dev/zero\n", "it is not a regular file"),
        ("/file /dev/stdin\n", "/dev/stdin cannot be read during a conversation; name a file"),
        ("/load /dev/fd/0\n", "/dev/fd/0 cannot be read during a conversation; name a file"),
        ("/load no/such/file\n", "cannot be read"),
        ("/clear all\n", "/clear takes no argument"),
        ("/color blue\n", "takes on or off, not 'blue'"),
        ("/regen\n", "There is nothing to answer"),
        ("/stats\n", "There is no answer yet"),
        ("/draft no/such/model.gguf\n", "no/such/model.gguf"),
        (b"u \xff\n", "not UTF-8"),
        ("a" * 300 + "\n", "leaves no room in a context of"),
    ],
)
def test_bad_chat_commands_end_a_script_with_one_sentence(
    chat: Run, model: Path, lines: str | bytes, message: str
) -> None:
    said = chat("-m", str(model), lines=lines, code=2)
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("path", "why"), [("no/such/folder/file", "No such file"), ("a\0b", "it is not a path")]
)
def test_an_unwritable_conversation_file_ends_a_script(
    chat: Run, model: Path, path: str, why: str
) -> None:
    said = chat("-m", str(model), lines=f"/save {path}\n", code=1)
    assert f"{path} cannot be written: {why}" in said.err


def test_bad_chat_options_give_one_sentence(chat: Run, bundled_model: Path, model: Path) -> None:
    assert "has no chat template" in chat("-m", str(bundled_model), code=2).err
    # Before any answer.
    for arguments, message in (
        (["--top-p", "2"], "--top-p must be"),
        (["-n", "5000000"], "-n is 5000000, but after the prompt"),
        (["--target-key", "k"], "requires --target-url (-u)"),
    ):
        said = chat("-m", str(model), *arguments, code=2)
        assert message in said.err
        assert len(said.err.strip().splitlines()) == 1


def test_target_key_of_the_environment_is_ignored_without_a_target_url(
    chat: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLLAMA_TARGET_KEY", "secret")
    assert chat("-m", str(model), "-n", "1", lines="u\n").out == ":\n"


def test_ctrl_c_ends_a_chat_script(scripted: Script) -> None:
    model = scripted(PIECES, then=None, chat_template=TEMPLATE, n_ctx=200_000)
    command = [sys.executable, "-m", "specllama", *OPTIONS, "-m", str(model), "-c", "200000"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"u\nu\n")
        process.stdin.close()
        assert process.stdout.read(6) == b":abcdu"
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) == 130


def test_chat_answers_are_those_of_a_session(chat: Run, smollm2: Path) -> None:
    said = chat("-m", str(smollm2), "-n", "12", "--spec-length", "3", lines="Hi!\n")
    with SpecSession(smollm2, n_threads=1, n_gpu_layers=0, spec_length=3) as session:
        answer = session.chat([{"role": "user", "content": "Hi!"}], max_tokens=12)
    assert said.out == answer.text + "\n"
