"""A call of a tool, in an answer of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specllama.requests.json_text import parsed


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model.

    Attributes:
        id: The "tool_call_id" for the message with the result.
        name: The tool's name.
        arguments: Its arguments by name; the text as it is if the answer ended inside them.
    """

    id: str
    name: str
    arguments: dict[str, Any] | str

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> list[ToolCall]:
        """Return the calls of a message of the assistant."""
        calls = []
        for one in message.get("tool_calls", ()):
            function = one["function"]
            calls.append(cls(one["id"], function["name"], call_arguments(function["arguments"])))
        return calls


def call_arguments(text: str) -> dict[str, Any] | str:
    """Return arguments as an object, or the text if it is not a JSON object."""
    try:
        arguments = parsed(text)
    except ValueError:
        return text
    return arguments if isinstance(arguments, dict) else text
