"""The chat templates of llama.cpp, and conversations with tool calls that they render."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from specllama import Chunk
from specllama.dialogue.answer_parts import Part, calls, content, thoughts
from specllama.dialogue.answer_reader import AnswerReader, WrapperReader
from specllama.dialogue.thoughts import ThoughtReader
from specllama.dialogue.tools.format import CallFormat
from specllama.dialogue.tools.reader import CallReader
from specllama.dialogue.tools.recognise import call_format
from specllama.dialogue.tools.tool import Tool
from specllama.model.chat_template import ChatTemplate, Message
from specllama.server.body.fields import Fields
from specllama.server.tools.read_tools import CHAT, read_tools

_FILE = Path(__file__).parent.parent / "data" / "chat_templates" / "llama_cpp.json.xz"

SOURCES: Mapping[str, str] = json.loads(lzma.decompress(_FILE.read_bytes()))
WITH_TOOLS = [name for name, source in SOURCES.items() if "tool" in source]

ASKED, RESULT, THOUGHT = "What is there?", "There is nothing.", "I look at it; then I know."


def _tool(name: str, required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    properties = {name: {"description": "One.", **one} for name, one in properties.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    described = {"name": name, "description": "A tool.", "parameters": parameters}
    return {"type": "function", "function": described}


_ITEMS = {"type": "array", "items": {"type": "integer"}}
TOOLS: Sequence[Tool] = read_tools(
    Fields({
        "tools": [
            _tool(
                "edit_file", ["a_path"],
                a_path={"type": "string"}, b_text={"type": "string"}, c_line={"type": "integer"},
                d_ratio={"type": "number"}, e_all={"type": "boolean"},
                f_none={"anyOf": [{"type": "null"}, {"type": "integer"}]},
                g_options={"type": "object", "properties": {"k": _ITEMS},
                           "additionalProperties": False},
                h_tags={"type": "array", "items": {"type": "string"}},
            ),
            _tool("run", ["command"], command={"type": "string"}),
            _tool("now"),
        ]
    }),
    CHAT,
)  # fmt: skip

# All types, sorted by name, as some templates do. LFM's puts ' around texts without escaping.
EDIT = {
    "a_path": "src/mäin.py",
    "b_text": 'def f(x):\n    return "<b>" + x["y"] + "\\n"  # {1} 😀\n',
    "c_line": 7, "d_ratio": 0.5, "e_all": True, "f_none": None, "g_options": {"k": [1, 2]},
    "h_tags": ["a", "b c"],
}  # fmt: skip
CONVERSATIONS: Mapping[str, list[tuple[str, dict[str, Any]]]] = {
    "a call": [("run", {"command": "ls -l"})],
    "no arguments": [("now", {})],
    "all types": [("edit_file", EDIT)],
    "two calls": [("edit_file", EDIT), ("run", {"command": "make"})],
}


@cache
def opened(name: str) -> tuple[ChatTemplate, CallFormat]:
    """Return a template and the format of its calls."""
    template = ChatTemplate(SOURCES[name], bos="<s>", eos="</s>")
    return template, call_format(template)


def rendered(name: str, made: Sequence[tuple[str, dict[str, Any]]], thought: str) -> str:
    """Return the template's text between a question and the result of the first of these calls."""
    template, form = opened(name)
    given = [
        {"id": f"call_{i}", "type": "function", "function": {"name": one, "arguments": arguments}}
        for i, (one, arguments) in enumerate(made)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": given}
    if thought:
        message["reasoning_content"] = thought
    results = [
        {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"],
         "content": RESULT}
        for call in given
    ]  # fmt: skip
    messages: list[Message] = [{"role": "user", "content": ASKED}, message, *results]
    text = template.render(form.conversation(messages, TOOLS), form.template_args(TOOLS))
    return text.rpartition(ASKED)[2].partition(RESULT)[0]


def answer_of(name: str, text: str) -> str:
    """Return the assistant's part of what `rendered` returns: from its thought or first call on."""
    thinking = opened(name)[0].thinking
    if thinking is not None and THOUGHT in text:
        return thinking.opening + text[text.index(THOUGHT) :]
    return text[begin_of_calls(name, text) :]


def begin_of_calls(name: str, text: str) -> int:
    """Return where the first call begins."""
    places = [text.find(one) for one in opened(name)[1].openings(TOOLS)]
    return min(one for one in places if one >= 0)


def reader_for(name: str) -> AnswerReader:
    """Return a reader for one answer of a model with this template."""
    template, form = opened(name)
    marks = template.marks
    return AnswerReader(
        None if marks.thinking is None else ThoughtReader(marks.thinking, opened=False),
        CallReader(form, TOOLS),
        {},
        wrappers=WrapperReader(marks.wrappers) if marks.wrappers else None,
    )


def parts_of(name: str, pieces: Iterable[str]) -> list[Part]:
    """Return the parts of an answer that arrives in pieces."""
    chunks = (SimpleNamespace(text=one, token=None) for one in pieces)
    return reader_for(name).read(cast(Iterable[Chunk], chunks))


def said_by(parts: Sequence[Part]) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return the thought, the content and the calls of an answer."""
    made = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in calls(parts)
    ]
    return thoughts(parts), content(parts).strip(), made
