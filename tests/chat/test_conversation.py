"""A conversation, and its file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from specllama import ArgumentError, SpecllamaError
from specllama.chat.conversation import Conversation
from specllama.chat.files import quoted


def talk(system: str | None = None) -> Conversation:
    conversation = Conversation(system)
    conversation.ask("Grüße\n```")
    conversation.answer("ok")
    return conversation


def test_messages_of_a_conversation_can_be_added_taken_back_and_cleared() -> None:
    conversation = talk("Be brief.")
    assert [one["role"] for one in conversation.messages] == ["system", "user", "assistant"]
    assert conversation.take_back("user") is None
    assert conversation.take_back("assistant") == "ok"
    assert len(conversation) == 1
    conversation.clear()
    assert conversation.messages == [{"role": "system", "content": "Be brief."}]
    assert conversation.take_back("user") is None


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_saved_conversation_loads_unchanged(tmp_path: Path, system: str | None) -> None:
    path = tmp_path / "talk.json"
    said = talk(system)
    said.save(str(path))
    said.save(str(path))  # replaces a conversation
    again = Conversation("another")
    again.load(str(path))
    assert (again.system, again.messages) == (system, said.messages)
    # The body of a request is a conversation, too, and a text may come in parts.
    parted = [
        {**one, "content": [{"type": "text", "text": line} for line in one["content"].split("\n")]}
        for one in said.messages
    ]
    for messages in (said.messages, parted):
        path.write_text(json.dumps({"model": "any", "messages": messages}))
        again.clear()
        again.load(str(path))
        assert again.messages == said.messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("9" * 5000, "it is not JSON|not a list of messages"),
        ("{}", "not a list of messages"),
        ('"hello"', "not a list of messages"),
        ("[1]", "the role of message 1 is not one of system, user, assistant"),
        ('[{"role": "tool", "content": ""}]', "the role of message 1"),
        ('[{"role": "user", "content": [{"type": "image_url"}]}]', "message 1 has no text"),
        ('[{"role": "user"}]', "message 1 has no text"),
        ('[{"role": "user", "content": "\\ud800"}]', "lone surrogate"),
        ('[{"role": "user", "content": ""}, {"role": "system", "content": ""}]', "message 2"),
        (b"\xff", "it is not UTF-8"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_without_a_conversation_are_refused_and_change_nothing(
    tmp_path: Path, text: str | bytes | None, message: str
) -> None:
    path = tmp_path / "file"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    conversation = talk()
    before = conversation.messages
    with pytest.raises(ArgumentError, match=message):
        conversation.load(str(path))
    assert conversation.messages == before


def test_saving_a_conversation_does_not_overwrite_other_files(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("chapter one")
    with pytest.raises(ArgumentError, match="is not a conversation; choose another name"):
        talk().save(str(path))
    assert path.read_text() == "chapter one"
    for place in (tmp_path, tmp_path / "no" / "folder"):
        with pytest.raises(SpecllamaError, match="cannot be written"):
            talk().save(str(place))


def test_quoting_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """Reading it could wait forever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArgumentError, match="pipe cannot be read: it is not a regular file"):
        quoted(str(pipe))


@pytest.mark.parametrize("path", ["a" * 300, "a" * 300 + "/b"])
def test_conversation_file_names_that_are_too_long_give_one_sentence(path: str) -> None:
    with pytest.raises(SpecllamaError, match="cannot be written: File name too long"):
        talk().save(path)
    with pytest.raises(ArgumentError, match="cannot be read: File name too long"):
        quoted(path)


def test_a_byte_order_mark_in_a_conversation_file_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text("\N{BYTE ORDER MARK}" + json.dumps(talk().messages), encoding="utf-8")
    again = Conversation()
    again.load(str(path))
    assert again.messages == talk().messages
