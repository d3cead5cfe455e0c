"""Calls as Hermes and Qwen write them: JSON between <tool_call> and </tool_call>."""

from __future__ import annotations

import json
from collections.abc import Sequence

from specllama.server.tools.format import CallFormat, Written, json_head
from specllama.server.tools.tool import Tool

_FENCE = "```json\n"
_INDENT = "\n  "


class HermesFormat(CallFormat):
    """JSON between <tool_call> and </tool_call>, one pair for each call.

    Small models, such as Qwen2.5-Coder, often write the same JSON between ```json and ```, or with
    nothing around it, and with line breaks in it. If such JSON begins with the name of a tool, it
    is taken for a call, too.
    """

    head = json_head("arguments")
    marks = ("<tool_call>",)

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        bare = [f'{{{gap}"name": "{tool.name}"' for tool in tools for gap in ("", _INDENT)]
        return ["<tool_call>", *(_FENCE + one for one in bare), *bare]

    def call_rule(self, name: str, arguments: str, text: Written) -> str:
        begin, indent, end = text("{"), text(_INDENT), text("}")
        named, key = text(f'"name": {json.dumps(name)},'), text('"arguments": ')
        line = text("\n")
        return f'{begin} ({indent})? {named} (" " | {indent}) {key} {arguments} ({line})? {end}'

    def calls_rule(self, parallel: bool, text: Written) -> str:
        tagged = " call ".join(map(text, ("<tool_call>\n", "\n</tool_call>")))
        fenced = " call ".join(map(text, (_FENCE, "\n```")))
        one = f"({tagged} | {fenced} | call)"
        line = text("\n")
        return f"{one} ({line} {one})*" if parallel else one
