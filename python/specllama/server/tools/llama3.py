"""Calls as Llama 3 writes them: the whole message is JSON."""

from __future__ import annotations

from collections.abc import Sequence

from specllama.server.tools.format import CallFormat, json_head, json_rule
from specllama.server.tools.tool import Tool


class Llama3Format(CallFormat):
    """JSON with `name` and `parameters`, one call at a time."""

    head = json_head("parameters")

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        return [f'{{"name": "{tool.name}"' for tool in tools]

    def call_rule(self, name: str, arguments: str) -> str:
        return json_rule(name, "parameters", arguments)

    def calls_rule(self, parallel: bool) -> str:
        return "call"
