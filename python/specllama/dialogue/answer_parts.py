"""The parts of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Thought:
    """A part of the model's thought (reasoning) before the answer."""

    text: str


@dataclass(frozen=True)
class Content:
    """A part of the text of the answer itself."""

    text: str


@dataclass(frozen=True)
class CallBegun:
    """The beginning of a call of a tool.

    Attributes:
        index: The call's number in the answer, from 0.
        call_id: The id that the call's result will refer to.
        name: The tool's name.
    """

    index: int
    call_id: str
    name: str


@dataclass(frozen=True)
class Arguments:
    """A part of a call's arguments, JSON as the model wrote it."""

    index: int
    text: str


Part = Thought | Content | CallBegun | Arguments


def thoughts(parts: Iterable[Part]) -> str:
    """Return the text of all thoughts."""
    return "".join(part.text for part in parts if isinstance(part, Thought))


def content(parts: Iterable[Part]) -> str:
    """Return the text of all content."""
    return "".join(part.text for part in parts if isinstance(part, Content))


def calls(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Return the calls in the form of a message's `tool_calls`."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, CallBegun):
            function = {"name": part.name, "arguments": ""}
            found.append({"id": part.call_id, "type": "function", "function": function})
        elif isinstance(part, Arguments):
            found[part.index]["function"]["arguments"] += part.text
    return found
