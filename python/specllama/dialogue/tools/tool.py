"""Tools that a model may call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.schema.grammar import schema_grammar
from specllama.requests.schema.schema_grammar import SchemaGrammar

NAME = re.compile(r"[\w.:/-]{1,128}", re.ASCII)
"""The name of a tool."""

_MOST_BYTES = 150_000
"""Maximum size of all schemas together, in bytes. A grammar, which is longer than the schemas, may
have 262144."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: The function's name.
        arguments: The grammar of its arguments.
        given: The whole description as in chat completions: {"type": "function", "function": ...}.
    """

    name: str
    arguments: SchemaGrammar
    given: Mapping[str, Any]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The given schema of the arguments; {} if there is none."""
        found = self.given["function"].get("parameters")
        return found if isinstance(found, Mapping) else {}

    @property
    def properties(self) -> Mapping[str, Any]:
        """The given schemas of the parameters by name."""
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}


def fitting(tools: list[Tool]) -> list[Tool]:
    """Return the tools. If all schemas together are too long for a grammar, the tools with the
    longest schemas accept any arguments."""
    room = _MOST_BYTES
    kept: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda one: len(one.arguments.text)):
        room -= len(tool.arguments.text.encode())
        free = _free("all tools' schemas together are too long")
        kept[tool.name] = tool if room >= 0 else Tool(tool.name, free, tool.given)
    return [kept[tool.name] for tool in tools]


def _free(reason: str) -> SchemaGrammar:
    """Return the grammar of any object, instead of a schema."""
    found = schema_grammar({"type": "object"})
    return SchemaGrammar(found.text, (), (f"{reason}, so any object is accepted",))


def arguments_grammar(schema: Mapping[str, Any], field: str, *, strict: bool) -> SchemaGrammar:
    """Return the grammar of a tool's arguments. If the schema cannot be enforced and `strict` is
    not set, any object is accepted.

    Raises:
        ArgumentError: `strict` is set, and the schema cannot be enforced; the message begins with
            `field`.
    """
    try:
        return schema_grammar({**schema, "type": "object"}, strict=strict)
    except ArgumentError as error:
        reason = str(error).removeprefix("json_schema ").removesuffix(".")
        if strict:
            raise ArgumentError(f"{field} {reason}.") from None
        return _free(f"the schema {reason}")
