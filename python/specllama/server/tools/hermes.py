"""Calls as Hermes and Qwen write them: JSON between <tool_call> and </tool_call>."""

from __future__ import annotations

from collections.abc import Sequence

from specllama.server.tools.format import CallFormat, json_head, json_rule, literal
from specllama.server.tools.tool import Tool


class HermesFormat(CallFormat):
    """JSON between <tool_call> and </tool_call>, one pair for each call."""

    head = json_head("arguments")
    marks = ("<tool_call>", "</tool_call>")

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        return ["<tool_call>"]

    def call_rule(self, name: str, arguments: str) -> str:
        return json_rule(name, "arguments", arguments)

    def calls_rule(self, parallel: bool) -> str:
        one = f"{literal('<tool_call>' + chr(10))} call {literal(chr(10) + '</tool_call>')}"
        return f'{one} ("\\n" {one})*' if parallel else one
