"""Calls as Hermes and Qwen write them: JSON between <tool_call> and </tool_call>."""

from __future__ import annotations

import json
from collections.abc import Sequence

from specllama.requests.schema.literal import literal
from specllama.server.tools.format import CallFormat, json_head
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

    def call_rule(self, name: str, arguments: str) -> str:
        indent = literal(_INDENT)
        named, key = literal(f'"name": {json.dumps(name)},'), literal('"arguments": ')
        return f'"{{" ({indent})? {named} (" " | {indent}) {key} {arguments} "\\n"? "}}"'

    def calls_rule(self, parallel: bool) -> str:
        tagged = " call ".join(map(literal, ("<tool_call>\n", "\n</tool_call>")))
        fenced = " call ".join(map(literal, (_FENCE, "\n```")))
        one = f"({tagged} | {fenced} | call)"
        return f'{one} ("\\n" {one})*' if parallel else one
