"""Calls by a model whose chat template does not describe tools, so that a message must."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.model.chat_template import Message
from specllama.server.tools.hermes import HermesFormat
from specllama.server.tools.tool import Tool

_TOOLS = (
    "You can call these tools; each is described by a line of JSON:\n{tools}\n"
    "To call one, write its name and arguments as JSON between <tool_call> and </tool_call>:\n"
    '<tool_call>\n{{"name": "the name", "arguments": {{"an argument": "its value"}}}}\n</tool_call>'
)


class GenericFormat(HermesFormat):
    """The format of Hermes, but tools are described in the first message, and earlier calls and
    results are written as text.

    Args:
        role: Role of the message that describes the tools: "system", or "user" if the template
            takes no system message.
    """

    def __init__(self, role: str = "system") -> None:
        self._role = role

    def template_args(self, tools: Sequence[Tool]) -> dict[str, Any]:
        return {}

    def conversation(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
        plain: list[dict[str, Any]] = []
        for message in messages:
            role, content = _plain(message)
            # Some templates require that user and assistant alternate.
            if plain and message["role"] == "tool" and plain[-1]["role"] == "user":
                plain[-1]["content"] += f"\n{content}"
            else:
                plain.append({"role": role, "content": content})
        if tools:
            self._describe(tools, plain)
        return list(plain)

    def _describe(self, tools: Sequence[Tool], messages: list[dict[str, Any]]) -> None:
        lines = "\n".join(json.dumps(tool.given["function"], ensure_ascii=False) for tool in tools)
        text = _TOOLS.format(tools=lines)
        if messages and messages[0]["role"] == self._role:
            first = (messages[0]["content"], text)
            messages[0]["content"] = "\n\n".join(first if self._role == "system" else first[::-1])
        else:
            messages.insert(0, {"role": self._role, "content": text})


def _plain(message: Message) -> tuple[str, str]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        return "user", f"<tool_response>\n{content}\n</tool_response>"
    calls = [_call(call["function"]) for call in message.get("tool_calls", ())]
    return message["role"], "\n".join([content, *calls] if content else calls)


def _call(function: Mapping[str, Any]) -> str:
    text = json.dumps(
        {"name": function["name"], "arguments": function["arguments"]}, ensure_ascii=False
    )
    return f"<tool_call>\n{text}\n</tool_call>"
