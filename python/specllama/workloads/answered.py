"""Conversations that the model answers with its own choices and chat template."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from specllama import _check
from specllama.errors import ArgumentError
from specllama.model.chat_template import Message
from specllama.workloads.replay import read_entries

ANSWERED = {
    "fix": "a bug to fix in given code, answered with the whole code",
    "rename": "a mechanical change to a given file, answered with the whole file",
    "write": "code from a description",
    "summarise": "a summary of a passage",
    "documents": "questions about given documents, answered with quotations",
    "extract": "records from a text, as JSON",
    "translate": "a passage in another language",
    "arithmetic": "word problems, step by step",
    "questions": "general knowledge",
    "chat": "conversations of several turns",
}
"""The workloads of the package, with descriptions; README.md in this folder has more."""

Half = Literal["tuning", "held-out"]
"""tuning: the first half of a workload's texts, which may be used to choose constants. held-out:
the other texts, for published figures."""


@dataclass(frozen=True)
class Dialogue:
    """A conversation whose last message is to be answered.

    Attributes:
        messages: The messages, of "user" and "assistant" in turn, the first and the last of "user";
            before these, at most one message of "system".
        name: Its name.
        workload: The workload it belongs to.
    """

    messages: tuple[Message, ...]
    name: str
    workload: str


def load_answered(name: str, half: Half | None = None) -> list[Dialogue]:
    """Return the conversations of a workload of the package, always in the same order.

    Args:
        name: A key of `ANSWERED`.
        half: The half of the texts; None: all.

    Raises:
        ArgumentError: The workload or the half does not exist.
    """
    if name not in ANSWERED:
        known = ", ".join(ANSWERED)
        raise ArgumentError(
            f"There is no answered workload {_check.quoted(name)}; choose one of {known}."
        )
    dialogues = read_dialogues(Path(__file__).parent / "answered" / f"{name}.jsonl")
    if half is None:
        return dialogues
    middle = len(dialogues) // 2
    halves = {"tuning": dialogues[:middle], "held-out": dialogues[middle:]}
    if half not in halves:
        raise ArgumentError(
            f"There is no half {_check.quoted(half)}; choose one of {', '.join(halves)}."
        )
    return halves[half]


def read_dialogues(path: str | os.PathLike[str]) -> list[Dialogue]:
    """Read conversations from a file in UTF-8 with one JSON object per line. Each has "name",
    "workload" and "messages", a list of {"role": ..., "content": ...}.

    Empty lines and other keys are ignored.

    Raises:
        ArgumentError: The file cannot be read, a line is not such an object (the message has its
            number), or the file has no conversation.
    """
    return [
        Dialogue(
            messages=_messages(f"{path}, line {number}", entry),
            name=entry["name"],
            workload=entry["workload"],
        )
        for number, entry in read_entries(path, ("name", "workload"))
    ]


def _messages(place: str, entry: dict[str, Any]) -> tuple[Message, ...]:
    if "messages" not in entry:
        raise ArgumentError(f'{place} has no "messages".')
    messages = entry["messages"]
    if not isinstance(messages, list) or not messages:
        raise ArgumentError(f'{place}: "messages" must be a list of at least one message.')
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise ArgumentError(
                f'{place}: messages[{i}] must be like {{"role": "user", "content": "..."}}.'
            )
        if not _check.text(f"{place}: messages[{i}] content", message["content"]):
            raise ArgumentError(f"{place}: messages[{i}] content must not be empty.")
    roles = [message["role"] for message in messages]
    said = roles[1:] if roles[0] == "system" else roles
    turns = ["assistant" if i % 2 else "user" for i in range(len(said))]
    if said != turns or len(said) % 2 == 0:
        raise ArgumentError(
            f"{place}: user and assistant must take turns, the user first and last, with at most "
            "one system message before them."
        )
    return tuple({key: message[key] for key in ("role", "content")} for message in messages)
