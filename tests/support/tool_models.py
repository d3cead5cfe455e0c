"""Tools, and scripted models that call them in each format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from serving import Server

ADD: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
NOW: dict[str, Any] = {"type": "function", "function": {"name": "now"}}
TOOLS = [ADD, NOW]

_TOOLS = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
_END = "{{ bos_token }}"  # the script begins after it
_HERMES = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %}"
    '{{ "\n" if not loop.first }}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% endfor %}"
)
_LLAMA3 = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %}"
    '{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}'
    "{% endfor %}{% endfor %}"
)
_MISTRAL = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% if m.tool_calls %}[TOOL_CALLS]["
    "{% for c in m.tool_calls %}"
    "{% if c.id|length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}, '
    '"id": "{{ c.id }}"}{% if not loop.last %}, {% endif %}{% endfor %}]</s>{% endif %}{% endfor %}'
)

_MISTRAL_ARGS = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %}"
    "[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"
    "{% endfor %}{% endfor %}"
)

_PARAMETERS = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '\\n<tool_call>\\n<function=' + c.function.name + '>\\n' }}"
    "{% for key, value in c.function.arguments.items() %}"
    "{{ '<parameter=' + key + '>\\n' + (value if value is string else value | tojson) }}"
    "{{ '\\n</parameter>\\n' }}{% endfor %}{{ '</function>\\n</tool_call>' }}"
    "{% endfor %}{% endfor %}"
)
_QUOTES = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %}"
    "<|tool_call>call:{{ c.function.name }}{{ '{' }}"
    "{% for key, value in c.function.arguments.items() %}{{ key }}:"
    """{% if value is string %}<|"|>{{ value }}<|"|>{% else %}{{ value | tojson }}{% endif %}"""
    "{{ ',' if not loop.last }}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}{% endfor %}"
)


@dataclass(frozen=True)
class Script:
    """A model that calls `add` with 1 and 2 and may then call `now`, after some text.

    Attributes:
        template: Its chat template.
        pieces: The pieces that it generates.
        control: Pieces that are tokens without shown text.
        calls: Number of tools that it calls.
    """

    template: str
    pieces: list[str]
    control: tuple[str, ...] = ()
    calls: int = 2


_ARGUMENTS = ['{"a"', ": 1", ', "b', '": 2', "}"]

SCRIPTS: dict[str, Script] = {
    "hermes": Script(
        _TOOLS + _HERMES + _END,
        ["Let", " me", " add.", " <tool", "_call>", '\n{"na', 'me": "', "add", '", "arguments": ',
         *_ARGUMENTS, "}\n</", "tool_call>", "\n<tool_call>", '\n{"name": "now"',
         ', "arguments": {}', "}\n</tool_call>"],
    ),
    "fenced": Script(
        _TOOLS + _HERMES + _END,
        ["```", "json\n{\n", '  "name": "', "add", '",\n  "arguments": ', *_ARGUMENTS,
         "\n}\n", "``", "`"],
        calls=1,
    ),
    "bare": Script(
        _TOOLS + _HERMES + _END,
        ["Let", " me", " add.\n", '{"na', 'me": "', "add", '", "arguments": ', *_ARGUMENTS,
         '}\n{"name": "now"', ', "arguments": {}}'],
    ),
    "generic": Script(
        "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}" + _END,
        ["Let", " me", " add. ", "<tool_call>\n", '{"name": "', "add", '", "arguments": ',
         *_ARGUMENTS, "}\n</tool_call>"],
        calls=1,
    ),
    "llama3": Script(
        _TOOLS + _LLAMA3 + _END,
        ['{"', 'name": "', "add", '", "parameters": ', *_ARGUMENTS, "}}"],
        calls=1,
    ),
    "mistral": Script(
        _TOOLS + _MISTRAL + _END,
        ["Let me", " add.", "[TOOL_CALLS]", '[{"name": "', "add", '", "arguments": ', *_ARGUMENTS,
         ', "id": "', "abcd12345", '"}', ', {"name": "now", "arguments": {}, "id": ',
         '"98765dcba"', "}]"],
        control=("[TOOL_CALLS]",),
    ),
    "mistral-args": Script(
        _TOOLS + _MISTRAL_ARGS + _END,
        ["[TOOL_CALLS]", "add", "[ARGS]", *_ARGUMENTS],
        control=("[TOOL_CALLS]", "[ARGS]"),
        calls=1,
    ),
    "parameters": Script(
        _TOOLS + _PARAMETERS + _END,
        ["Let", " me", " add.", "\n<tool", "_call>\n", "<function=", "add", ">\n<parameter=a>\n",
         "1", "\n</parameter>\n<parameter=b", ">\n2\n", "</parameter>\n</function>",
         "\n</tool_call>", "\n<tool_call>\n<function=now>", "\n</function>\n</tool_call>"],
    ),
    "quotes": Script(
        _TOOLS + _QUOTES + _END,
        ["<|tool_call>", "call:", "add", "{a", ":1", ",b:", "2", "}", "<tool_call|>"],
        control=("<|tool_call>", "<tool_call|>"),
        calls=1,
    ),
}  # fmt: skip

MESSAGES: list[Any] = [{"role": "user", "content": "u"}]


def chat(server: Server, **options: Any) -> Any:
    """Return the answer of a chat completion with TOOLS."""
    options = {"messages": MESSAGES, "model": "m", "temperature": 0, "tools": TOOLS} | options
    return server.openai().chat.completions.create(**options)


def called(message: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a message: names and arguments."""
    return [
        (call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls
    ]


CALLED = [("add", {"a": 1, "b": 2}), ("now", {})]


def allowed_tools(*names: str, mode: str = "required") -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
