"""Reads the tools of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specllama import _check
from specllama.dialogue.tools.tool import NAME, Tool, arguments_grammar, fitting
from specllama.errors import ArgumentError
from specllama.requests.schema.grammar import schema_grammar
from specllama.requests.schema.schema_grammar import SchemaGrammar
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_TOOLS, check_number, check_schema
from specllama.server.error import ApiError, leave_out


@dataclass(frozen=True)
class ToolForm:
    """The format of tools in an API's requests.

    Attributes:
        kind: The `type` of functions; clients may omit it. Tools of other types are ignored: the
            API's owner runs them, or they have no schema.
        schema: The field with the schema of the arguments.
        inside: The field with the object that describes the tool; "": the tool itself.
    """

    kind: str
    schema: str
    inside: str = ""

    def ignores(self, tool: Mapping[str, Any]) -> bool:
        """Whether a tool is ignored."""
        kind = tool.get("type", self.kind)
        return isinstance(kind, str) and kind != self.kind


CHAT = ToolForm("function", "parameters", "function")
RESPONSES = ToolForm("function", "parameters")
MESSAGES = ToolForm("custom", "input_schema")


def read_tools(fields: Fields, form: ToolForm) -> list[Tool]:
    """Return the tools of a request; [] if it has none. Raises ApiError."""
    given = fields.any("tools")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        fields.refuse("tools", "a list of tools")
    check_number("tools", len(given), MOST_TOOLS, "tools")
    tools: dict[str, Tool] = {}
    for i, one in enumerate(given):
        if form.ignores(one):
            leave_out(f"tools of type {one['type']!r:.40}")
            continue
        tool = _tool(described := Fields(one, f"tools[{i}]"), form)
        if tool.name in tools:
            field = _said(described, form).full_name("name")
            raise ApiError(400, f"{field} {tool.name!r} is the name of another tool.", param=field)
        tools[tool.name] = tool
    return fitting(list(tools.values()))


def _said(fields: Fields, form: ToolForm) -> Fields:
    """Return the fields that describe a tool."""
    if not form.inside:
        return fields
    fields.required(form.inside)
    return fields.object(form.inside)


def _tool(fields: Fields, form: ToolForm) -> Tool:
    if fields.text("type", form.kind) != form.kind:
        fields.refuse("type", f'"{form.kind}"')
    function = _said(fields, form)
    function.required("name")
    name = function.text("name")
    if not NAME.fullmatch(name):
        function.refuse("name", "1 to 128 letters, digits and _ . : / -")
    said: dict[str, Any] = {"name": name, "description": function.text("description")}
    strict = function.flag("strict")
    _check.text(function.full_name("description"), said["description"])
    arguments = schema_grammar({"type": "object", "properties": {}})
    if form.schema in function:
        field = function.full_name(form.schema)
        said["parameters"] = function.any(form.schema)
        check_schema(field, said["parameters"])
        _check.text(field, json.dumps(said["parameters"], ensure_ascii=False))
        arguments = _arguments(said["parameters"], field, strict)
    return Tool(name, arguments, {"type": "function", "function": said})


def _arguments(schema: Any, field: str, strict: bool) -> SchemaGrammar:
    """Return the grammar of a tool's arguments. Raises ApiError."""
    if not isinstance(schema, dict):
        raise ApiError(400, f"{field} must be a JSON schema, an object.", param=field)
    try:
        return arguments_grammar(schema, field, strict=strict)
    except ArgumentError as error:
        raise ApiError(400, str(error), param=field) from None
