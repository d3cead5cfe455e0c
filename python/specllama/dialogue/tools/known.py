"""Formats of calls that chat templates do not show: of known models, and for all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specllama.dialogue.tools.format import CallFormat, json_shape
from specllama.dialogue.tools.shape import KINDS, Parameters, Shape
from specllama.model.marks import NAME

_LINE = "\n"
_INDENTED = Shape(f'{{\n  "name": "{NAME}",\n  "arguments": ', "\n}")

HERMES = (
    json_shape("<tool_call>\n", "arguments", "\n</tool_call>", separator=_LINE),
    json_shape("```json\n", "arguments", "\n```", separator=_LINE),
    replace(_INDENTED, head=f"```json\n{_INDENTED.head}", tail=f"{_INDENTED.tail}\n```"),
    json_shape("", "arguments", "", separator=_LINE),
    replace(_INDENTED, separator=_LINE),
)
"""Calls of Hermes and Qwen: JSON between <tool_call> and </tool_call>. Small models, such as
Qwen2.5-Coder, often write the same JSON between ```json and ```, or without these, and with line
breaks in it. If such JSON begins with the name of a tool, it is a call, too."""

FALLBACK = CallFormat(HERMES, "fallback", describes=False, writes=False)
"""The format for unknown models."""

_QUOTED = Parameters(
    "",
    {kind: "='" if kind == "string" else "=" for kind in KINDS},
    {kind: "'" if kind == "string" else "" for kind in KINDS},
    ", ",
    frozenset({"boolean", "null", "array", "object"}),
)
_LFM2 = Shape(
    f"{NAME}(", ")", "<|tool_call_start|>[", ", ", "]<|tool_call_end|>", parameters=_QUOTED
)  # fmt: skip

BY_TEXT: Mapping[str, CallFormat] = {
    "<|tool_list_start|>": CallFormat((_LFM2,), "model", writes=False),
    "keep_past_thinking": CallFormat((_LFM2,), "model", writes=False),
    "<|tool_call|> followed by a JSON list": CallFormat(
        (json_shape("", "arguments", "", opening="<|tool_call|>[", separator=", ", closing="]"),),
        "model", writes=False,
    ),
}  # fmt: skip
"""Formats of models whose templates describe tools but do not write calls: LFM2, LFM2.5 and
Granite 3. The keys are texts of the templates."""

_COMMENTARY = "<|channel|>commentary to=functions."
HARMONY = Shape(
    f"{_COMMENTARY}{NAME} <|constrain|>json<|message|>", "<|call|>", trigger=_COMMENTARY
)  # fmt: skip
"""gpt-oss writes the head of a call in two ways; this is the one that its template does not
show."""
