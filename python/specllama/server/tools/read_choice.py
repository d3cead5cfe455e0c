"""Reads which tools a model may or must call."""

from __future__ import annotations

from collections.abc import Sequence

from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.tool import Tool
from specllama.server.body.fields import Fields
from specllama.server.body.messages import objects
from specllama.server.tools.read_tools import CHAT, ToolForm, read_tools


def read_choice(fields: Fields, form: ToolForm = CHAT) -> ToolChoice:
    """Read `tools`, `tool_choice` and `parallel_tool_calls` of a request. Raises ApiError."""
    tools = read_tools(fields, form)
    parallel = fields.flag("parallel_tool_calls", default=True)
    choice = fields.any("tool_choice")
    if choice is None or choice in ("auto", "none"):
        offered = [] if choice == "none" else tools
        return ToolChoice(offered, offered, False, parallel)
    if choice != "required" and not isinstance(choice, dict):
        fields.refuse("tool_choice", '"none", "auto", "required" or a function')
    if choice == "required":
        if not tools:
            fields.refuse("tool_choice", '"none" or "auto" (the request has no tools)')
        return ToolChoice(tools, tools, True, parallel)
    wanted = fields.object("tool_choice")
    if wanted.any("type") == "allowed_tools":
        allowed = wanted.object("allowed_tools") if form.inside else wanted
        return ToolChoice(tools, *_allowed(tools, allowed, form), parallel)
    return ToolChoice(tools, [_named(tools, wanted, form)], True, False)


def _allowed(tools: Sequence[Tool], allowed: Fields, form: ToolForm) -> tuple[Sequence[Tool], bool]:
    """Return the tools that may be called, and whether one of them must be. Raises ApiError."""
    mode = allowed.text("mode", "auto")
    if mode not in ("auto", "required"):
        allowed.refuse("mode", '"auto" or "required"')
    allowed.required("tools")
    given = [one for one in objects(allowed, "tools", "tools") if not form.ignores(one.given)]
    named = {tool.name: tool for tool in (_named(tools, one, form) for one in given)}
    if mode == "required" and not named:
        allowed.refuse("mode", '"auto" (no tool is allowed)')
    return list(named.values()), mode == "required"


def _named(tools: Sequence[Tool], chosen: Fields, form: ToolForm) -> Tool:
    """Return the tool that a choice names, in an API's format. Raises ApiError."""
    if chosen.text("type", form.kind) != form.kind:
        chosen.refuse("type", f'"{form.kind}"')
    return named_tool(tools, chosen.object(form.inside) if form.inside else chosen)


def named_tool(tools: Sequence[Tool], chosen: Fields) -> Tool:
    """Return the tool with the name in the choice's field `name`. Raises ApiError."""
    chosen.required("name")
    name = chosen.text("name")
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        chosen.refuse("name", "the name of one of the tools")
    return found
