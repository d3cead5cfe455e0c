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
"""Most bytes of all schemas together: a grammar may have 262144, with all that is around them."""


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
        """The schema of the arguments as it was given; {} if there is none."""
        found = self.given["function"].get("parameters")
        return found if isinstance(found, Mapping) else {}

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of the parameters by their names, as they were given."""
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}


def fitting(tools: list[Tool]) -> list[Tool]:
    """Return the tools, those with the longest schemas with any arguments if all schemas together
    would be longer than a grammar may be."""
    room = _MOST_BYTES
    kept: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda one: len(one.arguments.text)):
        room -= len(tool.arguments.text.encode())
        free = _free("all tools' schemas are too long together")
        kept[tool.name] = tool if room >= 0 else Tool(tool.name, free, tool.given)
    return [kept[tool.name] for tool in tools]


def _free(reason: str) -> SchemaGrammar:
    """Return the grammar of any object, in place of a schema."""
    found = schema_grammar({"type": "object"})
    return SchemaGrammar(found.text, (), (f"{reason}, so any object will do",))


def arguments_grammar(schema: Mapping[str, Any], field: str, *, strict: bool) -> SchemaGrammar:
    """Return the grammar of a tool's arguments. If its schema cannot be followed, any object will
    do, unless it must be followed strictly.

    Raises:
        ArgumentError: It cannot be followed, and `strict` is set; the message begins with `field`.
    """
    try:
        return schema_grammar({**schema, "type": "object"}, strict=strict)
    except ArgumentError as error:
        reason = str(error).removeprefix("json_schema ").removesuffix(".")
        if strict:
            raise ArgumentError(f"{field} {reason}.") from None
        return _free(f"the schema {reason}")
