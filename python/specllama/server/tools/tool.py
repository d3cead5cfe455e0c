"""A function that a model may have called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.tools.schema import ANY_OBJECT, expressible, without_lengths

_MOST_TOOLS = 128
_NAME = re.compile(r"[\w.:/-]{1,128}", re.ASCII)


@dataclass(frozen=True)
class Tool:
    """A function that a model may have called.

    Attributes:
        name: What it is called.
        parameters: The schema of its arguments, as far as a grammar can express it.
        given: All that was said of it, as the API has it: {"type": "function", "function": {...}}.
    """

    name: str
    parameters: Mapping[str, Any]
    given: Mapping[str, Any]


def read_tools(fields: Fields, *, flat: bool = False) -> list[Tool]:
    """Return the tools that a request names, none if it names none. Raises ApiError.

    Args:
        fields: The request.
        flat: What is said of a function stands in the tool itself, as in /v1/responses. There
            clients always name tools of the API's owner, too (web_search, ...): these are passed
            over.
    """
    given = fields.any("tools")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        fields.refuse("tools", "a list of tools")
    if len(given) > _MOST_TOOLS:
        raise ApiError(400, f"tools has more than {_MOST_TOOLS} tools.", param="tools")
    tools: dict[str, Tool] = {}
    for i, one in enumerate(given):
        if flat and isinstance(one.get("type"), str) and one["type"] != "function":
            continue
        tool = _tool(Fields(one, f"tools[{i}]"), flat)
        if tool.name in tools:
            field = f"tools[{i}].name" if flat else f"tools[{i}].function.name"
            raise ApiError(400, f"{field} {tool.name!r} is the name of another tool.", param=field)
        tools[tool.name] = tool
    return list(tools.values())


def _tool(fields: Fields, flat: bool) -> Tool:
    if fields.text("type", "function") != "function":
        fields.refuse("type", '"function"')
    if not flat:
        fields.required("function")
    function = fields if flat else fields.object("function")
    function.required("name")
    name = function.text("name")
    if not _NAME.fullmatch(name):
        function.refuse("name", "1 to 128 letters, digits and _ . : / -")
    said: dict[str, Any] = {"name": name, "description": function.text("description")}
    function.flag("strict")
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    if "parameters" in function:
        said["parameters"] = function.any("parameters")
        parameters = expressible(said["parameters"], function.full_name("parameters"))
    return Tool(name, parameters, {"type": "function", "function": said})


def unmeasured(tool: Tool) -> Tool:
    """Return a tool whose arguments may be of any length."""
    return Tool(tool.name, without_lengths(tool.parameters), tool.given)


def loosened(tool: Tool) -> Tool:
    """Return a tool whose arguments may be any object."""
    return Tool(tool.name, ANY_OBJECT, tool.given)
