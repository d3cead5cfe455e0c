"""What a model writes to call tools, and what it reads of them."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from specllama.model.chat_template import Message
from specllama.server.tools.tool import Tool


class CallFormat(ABC):
    """What a model writes to call tools, and what it reads of them.

    Attributes:
        head: Fits what stands before the arguments of a call; its group `name` is the tool's.
        marks: Texts that mean something to the format and may be tokens whose text is not shown.
    """

    head: ClassVar[re.Pattern[str]]
    marks: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def openings(self, tools: Sequence[Tool]) -> list[str]:
        """Return the texts any of which begins a call."""

    @abstractmethod
    def call_rule(self, name: str, arguments: str) -> str:
        """Return the GBNF of a call of a tool, given that of its arguments."""

    @abstractmethod
    def calls_rule(self, parallel: bool) -> str:
        """Return the GBNF of all that is called at once, the rule `call` being one of them."""

    def conversation(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
        """Return the messages as the model's chat template takes them."""
        return list(messages)

    def template_args(self, tools: Sequence[Tool]) -> dict[str, Any]:
        """Return what its chat template takes besides."""
        return {"tools": [tool.given for tool in tools]} if tools else {}


def literal(text: str) -> str:
    """Return a text as GBNF."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def json_head(arguments: str) -> re.Pattern[str]:
    """Return what stands before the arguments of {"name": "...", "arguments": ...}.

    Args:
        arguments: What the key of the arguments is.
    """
    return re.compile(rf'"name":\s*"(?P<name>[^"]*)",\s*"{arguments}":\s*(?=\{{)')


def json_rule(name: str, key: str, arguments: str, end: str = "}") -> str:
    """Return the GBNF of {"name": "...", "arguments": ...}.

    Args:
        name: The tool's.
        key: What the key of the arguments is.
        arguments: Their rule.
        end: What is behind them.
    """
    head = f'{{"name": {json.dumps(name)}, "{key}": '
    return f"{literal(head)} {arguments} {literal(end)}"
