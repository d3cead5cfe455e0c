"""Recognises the format of calls that a model was trained on."""

from __future__ import annotations

from specllama.errors import ArgumentError
from specllama.model.chat_template import ChatTemplate, Message
from specllama.requests.schema.schema_grammar import SchemaGrammar
from specllama.server.tools.format import CallFormat
from specllama.server.tools.generic import GenericFormat
from specllama.server.tools.hermes import HermesFormat
from specllama.server.tools.llama3 import Llama3Format
from specllama.server.tools.mistral import MistralArgsFormat, MistralFormat
from specllama.server.tools.tool import Tool

# Most characters between the opening of a call and its head.
_BETWEEN = 4

_NAME, _OTHER = "a_tool_to_look_for", "another_tool"
_TOOLS = [
    Tool(name, SchemaGrammar("{}"), {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object"}},
    })
    for name in (_NAME, _OTHER)
]  # fmt: skip
_CALL = {"id": "call_1", "type": "function", "function": {"name": _NAME, "arguments": {"x": 1}}}
_ASKED: list[Message] = [{"role": "user", "content": "?"}]
_CALLED: list[Message] = [
    *_ASKED,
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "!"},
]


def call_format(template: ChatTemplate) -> CallFormat:
    """Return the format in which a chat template writes calls. It is the generic format if that one
    is not known here, or if the template does not describe tools to the model."""
    for one in (MistralArgsFormat(), MistralFormat(), HermesFormat(), Llama3Format()):
        if _writes(template, one):
            return one
    system = _rendered(template, [{"role": "system", "content": "!"}, *_ASKED], [], GenericFormat())
    return GenericFormat("user" if system is None else "system")


def _writes(template: ChatTemplate, calls: CallFormat) -> bool:
    asked = _rendered(template, _ASKED, _TOOLS, calls)
    if asked is None or _OTHER not in asked:
        return False
    called = _rendered(template, _CALLED, _TOOLS, calls) or ""
    opening = calls.openings(_TOOLS[:1])[0]
    return any(
        opening in called[max(0, found.start() - len(opening) - _BETWEEN) : found.end()]
        for found in calls.head.finditer(called)
        if found["name"] == _NAME
    )


def _rendered(
    template: ChatTemplate, messages: list[Message], tools: list[Tool], calls: CallFormat
) -> str | None:
    """Return a prompt; None if the template does not take its messages."""
    try:
        return template.render(calls.conversation(messages, tools), calls.template_args(tools))
    except ArgumentError:
        return None
