"""Calls as Llama 3 writes them: the whole message is JSON."""

from __future__ import annotations

from collections.abc import Sequence

from specllama.server.tools.format import CallFormat, Written, json_call, json_head
from specllama.server.tools.tool import Tool


class Llama3Format(CallFormat):
    """JSON with `name` and `parameters`, one call at a time."""

    head = json_head("parameters")

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        return [f'{{"name": "{tool.name}"' for tool in tools]

    def call_rule(self, name: str, arguments: str, text: Written) -> str:
        return json_call(name, "parameters", arguments, text)

    def calls_rule(self, parallel: bool, text: Written) -> str:
        return "call"
