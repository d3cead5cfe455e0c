"""Typed text in a chat: where a message ends, its content, and commands."""

from __future__ import annotations

import io
import sys

import pytest
from specllama.chat import typed
from specllama.chat.lines import Lines


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("one\ntwo", ["one", "two"]),
        ('"""one\n\n  two\n"""\nthree\n', ["one\n\n  two", "three"]),
        ('"""one"""\n"""\ntwo', ["one", "two"]),
        ('"""\n', [""]),
        ("one\\\ntwo\\\nthree\nfour", ["one\ntwo\nthree", "four"]),
        ("one\\", ["one\\"]),
        ('"""a\\\nb"""\n', ["a\\\nb"]),
        ("\n  \n", ["", ""]),
    ],
)
def test_quotes_and_backslashes_join_chat_lines_to_one_message(
    monkeypatch: pytest.MonkeyPatch, text: str, messages: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    lines = Lines(prompts=False)
    for expected in messages:
        assert typed.message(lines.read()) == expected
    with pytest.raises(EOFError):
        lines.read()


@pytest.mark.parametrize("text", ["/help", "/?", "/file x/y", "/", "/nothing\n/help"])
def test_chat_commands_begin_with_a_slash(text: str) -> None:
    assert typed.is_command(text)


@pytest.mark.parametrize("text", ["", "help", " /help", "/usr/bin is full", "/ 2", '"""/help"""'])
def test_paths_and_plain_texts_are_not_chat_commands(text: str) -> None:
    assert not typed.is_command(text)
