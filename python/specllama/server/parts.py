"""What an answer is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Thought:
    """A part of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True)
class Content:
    """A part of what is said."""

    text: str


@dataclass(frozen=True)
class CallBegun:
    """A call begins.

    Attributes:
        index: Which one of the answer it is, from 0.
        call_id: What its result will be known by.
        name: The tool's.
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
    """Return all that was thought."""
    return "".join(part.text for part in parts if isinstance(part, Thought))


def content(parts: Iterable[Part]) -> str:
    """Return all that was said."""
    return "".join(part.text for part in parts if isinstance(part, Content))


def calls(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Return the calls as messages hold them."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, CallBegun):
            function = {"name": part.name, "arguments": ""}
            found.append({"id": part.call_id, "type": "function", "function": function})
        elif isinstance(part, Arguments):
            found[part.index]["function"]["arguments"] += part.text
    return found
