"""The choice of the tools that a model may or must call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specllama.server.fields import Fields
from specllama.server.tools.tool import CHAT, Tool, ToolForm, read_tools


@dataclass(frozen=True)
class ToolChoice:
    """The tools that a model may call, and whether it must call one.

    Attributes:
        offered: Tools that the prompt describes; none: the model only writes text.
        tools: Those of them that may be called.
        must: Whether the model must call one of them.
        parallel: Whether it may call several in one answer.
    """

    offered: Sequence[Tool]
    tools: Sequence[Tool]
    must: bool
    parallel: bool

    @classmethod
    def read(cls, fields: Fields, form: ToolForm = CHAT) -> ToolChoice:
        """Read `tools`, `tool_choice` and `parallel_tool_calls` of a request. Raises ApiError."""
        tools = read_tools(fields, form)
        parallel = fields.flag("parallel_tool_calls", default=True)
        choice = fields.any("tool_choice")
        if choice is None or choice in ("auto", "none"):
            offered = [] if choice == "none" else tools
            return cls(offered, offered, False, parallel)
        if choice != "required" and not isinstance(choice, dict):
            fields.refuse("tool_choice", '"none", "auto", "required" or a function')
        if choice == "required":
            if not tools:
                fields.refuse("tool_choice", '"none" or "auto" where there are no tools')
            return cls(tools, tools, True, parallel)
        wanted = fields.object("tool_choice")
        if wanted.text("type", form.kind) != form.kind:
            wanted.refuse("type", f'"{form.kind}"')
        named = named_tool(tools, wanted.object(form.inside) if form.inside else wanted)
        return cls(tools, [named], True, False)


def named_tool(tools: Sequence[Tool], chosen: Fields) -> Tool:
    """Return the tool whose name is in the field `name` of the choice. Raises ApiError."""
    chosen.required("name")
    name = chosen.text("name")
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        chosen.refuse("name", "the name of one of the tools")
    return found
