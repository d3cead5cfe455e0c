"""`specllama chat` at a terminal: editing, history, Ctrl-C."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import Terminal

Script = Callable[..., Path]
PIECES = ["u", ":", "a", "b", "c", "d"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
UP, ALT_ENTER, CTRL_C, CTRL_D = "\x1b[A", "\x1b\r", "\x03", "\x04"
KINDS = {
    "editor": ([sys.executable, "-m", "specllama"], {}),
    "a terminal that can do little": ([sys.executable, "-m", "specllama"], {"TERM": "dumb"}),
    "without prompt_toolkit": (
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['prompt_toolkit'] = None; "
            "from specllama.__main__ import main; sys.exit(main())",
        ],
        {},
    ),
}
"""The library that reads the typed text, and its environment."""


@pytest.fixture
def model(scripted: Script) -> Path:
    return scripted(PIECES, chat_template=TEMPLATE)


@pytest.fixture
def endless(scripted: Script) -> Path:
    return scripted(PIECES, then=None, chat_template=TEMPLATE, n_ctx=200_000)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chat(
    model: Path, cache: Path, *arguments: str, kind: str = "editor", **environment: str
) -> Terminal:
    program, variables = KINDS[kind]
    command = [*program, "chat", "-m", str(model), "-ngl", "0", "-t", "1", *arguments]
    return Terminal(command, {"SPECLLAMA_CACHE": str(cache), **variables, **environment})


def ready(terminal: Terminal) -> None:
    terminal.wait_for("> ")


def test_chat_answers_in_a_terminal_and_ends_at_end_of_input(
    model: Path, tmp_path: Path, kind: str
) -> None:
    with chat(model, tmp_path, kind=kind) as terminal:
        hint = "pip install 'specllama[chat]'" if "without" in kind else "/help lists the commands."
        terminal.wait_for(hint)
        ready(terminal)
        terminal.type("u\r")
        terminal.wait_for(":abcd")
        terminal.wait_for("tokens/s")
        ready(terminal)
        terminal.type("/nonsense\r")
        terminal.wait_for("There is no command /nonsense")
        ready(terminal)
        terminal.type("/clear\r")
        terminal.wait_for("Forgotten.")
        ready(terminal)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0


def test_ctrl_c_ends_an_answer_but_not_the_chat(endless: Path, tmp_path: Path, kind: str) -> None:
    with chat(endless, tmp_path, "-c", "200000", kind=kind) as terminal:
        for _ in range(2):
            ready(terminal)
            terminal.type("u\r")
            terminal.wait_for(":abcdu:abcdu")
            terminal.type(CTRL_C)
            terminal.wait_for("tokens/s")
        ready(terminal)
        path = tmp_path / "talk.json"
        terminal.type(f"/save {path}\r")
        terminal.wait_for("4 messages saved in")
        said = [one["content"] for one in json.loads(path.read_text())]
        assert said[0] == said[2] == "u"
        assert said[1].startswith(":abcdu:abcdu")
        ready(terminal)
        terminal.type(CTRL_C)
        terminal.wait_for("Press Ctrl-C again, or Ctrl-D, to end the conversation.")
        ready(terminal)
        terminal.type(CTRL_C)
        assert terminal.wait() == 0


def test_a_message_that_does_not_fit_keeps_the_conversation(
    model: Path, tmp_path: Path, kind: str
) -> None:
    with chat(model, tmp_path, "-c", "40", kind=kind) as terminal:
        refused = "leaves no room in a context of 40; shorten it or raise -c."
        for text, answer in (("u", ":abcd"), ("a" * 99, refused), ("b", "cd")):
            ready(terminal)
            terminal.type(f"{text}\r")
            terminal.wait_for(answer)
        ready(terminal)
        terminal.type("/exit\r")
        assert terminal.wait() == 0


def test_chat_messages_of_several_lines_can_be_typed_and_pasted(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "talk.json"
    with chat(model, tmp_path) as terminal:
        for typed in (
            f"u{ALT_ENTER}a\r",
            "u\\\ra\r",
            '"""u\ra"""\r',
            "\x1b[200~u\ra\x1b[201~\r",  # pasted
        ):
            ready(terminal)
            terminal.type(typed)
            terminal.wait_for("bcd")
            terminal.wait_for("tokens/s")
        ready(terminal)
        terminal.type(f"/save {path}\r")
        terminal.wait_for("8 messages saved in")
    asked = [one["content"] for one in json.loads(path.read_text()) if one["role"] == "user"]
    assert asked == ["u\na"] * 4


def test_the_chat_history_is_kept_in_a_private_file(model: Path, tmp_path: Path) -> None:
    with chat(model, tmp_path / "cache") as terminal:
        ready(terminal)
        terminal.type(f"u{ALT_ENTER}a\r")
        terminal.wait_for("tokens/s")
        ready(terminal)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0
    assert (tmp_path / "cache" / "chat-history").stat().st_mode & 0o777 == 0o600
    path = tmp_path / "talk.json"
    with chat(model, tmp_path / "cache") as terminal:
        ready(terminal)
        terminal.type("junk")
        terminal.wait_for("junk")
        terminal.type(CTRL_C)  # clears the line and nothing else
        terminal.wait_for("/help")  # the placeholder of an empty line
        terminal.type(UP + "\r")
        terminal.wait_for("tokens/s")
        ready(terminal)
        terminal.type("/sa\t")
        terminal.wait_for("ve")  # completed
        terminal.type(f" {path}\r")
        terminal.wait_for("2 messages saved in")
    assert json.loads(path.read_text())[0]["content"] == "u\na"


@pytest.mark.parametrize("kind", ["no folder", "pipe", "endless", "huge"])
def test_an_unusable_history_file_does_not_stop_the_chat(
    model: Path, tmp_path: Path, kind: str
) -> None:
    cache = tmp_path / "folder"
    history = cache / "chat-history"
    if kind == "no folder":
        cache.write_text("")
    else:
        cache.mkdir()
    if kind == "pipe":
        os.mkfifo(history)
    if kind == "endless":
        history.symlink_to("/dev/zero")
    if kind == "huge":
        history.touch()
        os.truncate(history, 1 << 40)
    with chat(model, cache) as terminal:
        ready(terminal)
        terminal.type("u\r")
        terminal.wait_for(":abcd")
        terminal.wait_for("tokens/s")
        ready(terminal)
        terminal.type("/clear\r")
        terminal.wait_for("Forgotten.")
        ready(terminal)
        terminal.type(UP + UP + "\r")
        terminal.wait_for(":abcd")
        ready(terminal)
        terminal.type(CTRL_D)
        assert terminal.wait() == 0


def test_no_color_disables_chat_colours_and_the_color_command_toggles_them(
    endless: Path, tmp_path: Path
) -> None:
    options = ("-c", "300", "-n", "40", "--spec-length", "4")
    with chat(endless, tmp_path, *options, NO_COLOR="") as terminal:
        ready(terminal)
        terminal.type("u\r")
        terminal.wait_for("tokens/s")
        assert "\x1b[32m" in terminal.raw
        ready(terminal)
        terminal.type("/color\r")
        terminal.wait_for("Colours: off")
        ready(terminal)
        n_before = terminal.raw.count("\x1b[32m")
        terminal.type("/regen\r")
        terminal.wait_for("tokens/s")
        assert terminal.raw.count("\x1b[32m") == n_before
    with chat(endless, tmp_path, *options, NO_COLOR="1") as terminal:
        ready(terminal)
        terminal.type("u\r")
        terminal.wait_for("tokens/s")
        assert "\x1b[32m" not in terminal.raw
