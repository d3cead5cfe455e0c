"""Formats of calls: what models write to call tools, and how prompts describe tools."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from specllama.model.chat_template import Message
from specllama.server.tools.tool import Tool

Written = Callable[[str], str]
"""Returns a text as it is written in a rule of a grammar; tokens of the model may be in it."""


class CallFormat(ABC):
    """A format of calls: what a model writes to call tools, and how its prompt describes them.

    Attributes:
        head: Matches the part of a call before its arguments; the group `name` is the tool's name.
        marks: Texts of the format that may be special tokens, whose text chunks do not show.
    """

    head: ClassVar[re.Pattern[str]]
    marks: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def openings(self, tools: Sequence[Tool]) -> list[str]:
        """Return the texts with which a call may begin."""

    @abstractmethod
    def call_rule(self, name: str, arguments: str, text: Written) -> str:
        """Return the rule, in Lark, of a call of the tool `name`.

        Args:
            name: The tool's name.
            arguments: The name of the rule of its arguments.
            text: Writes texts.
        """

    @abstractmethod
    def calls_rule(self, parallel: bool, text: Written) -> str:
        """Return the rule of all calls of an answer, in which the rule `call` is a single call."""

    def conversation(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
        """Return the messages in the form that the model's chat template takes."""
        return list(messages)

    def template_args(self, tools: Sequence[Tool]) -> dict[str, Any]:
        """Return further arguments of the model's chat template."""
        return {"tools": [tool.given for tool in tools]} if tools else {}


def json_head(arguments: str) -> re.Pattern[str]:
    """Return a pattern for the part of {"name": "...", "arguments": ...} before the arguments.

    Args:
        arguments: The key of the arguments.
    """
    return re.compile(rf'"name":\s*"(?P<name>[^"]*)",\s*"{arguments}":\s*(?=\{{)')


def json_call(name: str, key: str, arguments: str, text: Written, end: str = "}") -> str:
    """Return the rule of {"name": "...", "arguments": ...}.

    Args:
        name: The tool's name.
        key: The key of the arguments.
        arguments: The name of the rule of the arguments.
        text: Writes texts.
        end: The text after the arguments.
    """
    head = f'{{"name": {json.dumps(name)}, "{key}": '
    return f"{text(head)} {arguments} {text(end)}"
