"""Chat: the model's own template, memory over turns, and the command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_model import BOS, FIRST
from specllama import ArgumentError, ModelError, SpecSession

Open = Callable[..., SpecSession]
Script = Callable[..., Path]
PIECES = ["u", ":", "a", "b", "c", "d"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'critic' %}{{ raise_exception('no critics') }}{% endif %}"
    "{{ m.content }}{% endfor %}{% if extra %}{{ extra }}{% endif %}"
)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.fixture
def model(scripted: Script) -> Path:
    return scripted(PIECES, chat_template=TEMPLATE)


def test_the_models_own_template(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    # BOS is written by the template, once.
    assert session.render_chat([user("u"), user("a")]) == [BOS, FIRST, FIRST + 2]
    answer = session.chat([user("u")])
    assert (answer.text, answer.finish_reason) == (":abcd", "stop")
    assert session.chat([user("u")], max_tokens=2).text == ":a"
    assert "".join(chunk.text for chunk in session.stream_chat([user("a")])) == "bcd"
    assert session.chat([user("u")], template_args={"extra": "b"}).text == "cd"


def test_turns_reuse_the_memory(model: Path, open_session: Open) -> None:
    session = open_session(model, kv_type="f16")
    first = session.chat([user("u")], max_tokens=3)
    turns = [user("u"), {"role": "assistant", "content": first.text}, user("a")]
    second = session.chat(turns)
    assert second.text == "bcd"
    # All that was said, but for the last token, which had not been decoded.
    assert second.stats.reused_tokens == second.stats.prompt_tokens - 2


def test_a_model_without_a_template(open_session: Open) -> None:
    with pytest.raises(ModelError, match="has no chat template; use generate"):
        open_session().chat([user("hello")])


def test_a_template_that_cannot_be_read(scripted: Script, open_session: Open) -> None:
    session = open_session(scripted(PIECES, chat_template="{% if %}"), kv_type="f16")
    with pytest.raises(ModelError, match="chat template cannot be read"):
        session.chat([user("u")])


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "messages is empty"),
        ("u", "must be a list"),
        (user("u"), "must be a list"),
        (["u"], r"messages\[0\] must be like"),
        ([user("u"), {"content": "u"}], r"messages\[1\] must be like"),
        ([{"role": "critic", "content": "u"}], "refuses these messages: no critics"),
        ([user("\ud800")], "surrogate"),
    ],
)
def test_bad_messages(model: Path, open_session: Open, messages: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(model, kv_type="f16").chat(messages)


def chat(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "specllama", "chat", "-ngl", "0", "-t", "1", *arguments],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command(model: Path) -> None:
    process = chat("-m", str(model), lines="u\n\n/reset\na\n")
    assert process.returncode == 0, process.stderr
    assert process.stdout == ":abcd\nbcd\n"
    assert process.stderr.count("tokens/s") == 2
    assert chat("-m", str(model), "--system", "u", "-n", "1", lines="a\n").stdout == "b\n"


def test_the_command_with_bad_input(bundled_model: Path, model: Path) -> None:
    process = chat("-m", str(bundled_model))
    assert process.returncode == 2
    assert "has no chat template" in process.stderr
    process = chat("-m", str(model), "--top-p", "0", lines="u\n")
    assert process.returncode == 2
    assert "top_p must be" in process.stderr
    assert len(process.stderr.strip().splitlines()) == 1


def test_a_message_that_does_not_fit_costs_no_conversation(model: Path) -> None:
    """At a terminal; a script that pipes messages is told by the exit code."""
    command = [sys.executable, "-m", "specllama", "chat", "-m", str(model), "-t", "1", "-c", "40"]
    parent, child = pty.openpty()
    os.write(parent, b"u\n" + b"a" * 99 + b"\nu\n\x04")
    process = subprocess.run(
        command, stdin=child, capture_output=True, text=True, check=False, timeout=60
    )
    os.close(child)
    os.close(parent)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("leaves no room in a context of 40") == 1
    assert process.stderr.count("tokens/s") == 2
