"""Which format of calls a model was trained on."""

from __future__ import annotations

from specllama.errors import ArgumentError
from specllama.model.chat_template import ChatTemplate
from specllama.server.tools.format import CallFormat
from specllama.server.tools.generic import GenericFormat
from specllama.server.tools.hermes import HermesFormat
from specllama.server.tools.llama3 import Llama3Format
from specllama.server.tools.mistral import MistralArgsFormat, MistralFormat
from specllama.server.tools.tool import Tool

_PROBE = Tool("a_tool_to_look_for", {}, {
    "type": "function",
    "function": {"name": "a_tool_to_look_for", "description": "", "parameters": {}},
})  # fmt: skip


def call_format(template: ChatTemplate) -> CallFormat:
    """Return the format that a chat template shows, as far as it is known here, and the generic one
    where it shows none, or tells the model nothing of the tools it is given."""
    found = _by_marks(template.source)
    try:
        prompt = template.render([{"role": "user", "content": "?"}], found.template_args([_PROBE]))
    except ArgumentError:
        return GenericFormat()
    return found if _PROBE.name in prompt else GenericFormat()


def _by_marks(source: str) -> CallFormat:
    if "[TOOL_CALLS]" in source:
        return MistralArgsFormat() if "[ARGS]" in source else MistralFormat()
    # Others put something else than JSON between the same marks.
    if "<tool_call>" in source and not any(m in source for m in ("<function=", "<arg_key>")):
        return HermesFormat()
    if "<|start_header_id|>" in source and '"parameters"' in source:
        return Llama3Format()
    return GenericFormat()
