"""Formats of calls: how they are recognised, schemas as grammars, texts taken apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from specllama import SpecSession
from specllama.model.chat_template import ChatTemplate
from specllama.server.error import ApiError
from specllama.server.parts import Arguments, CallBegun, Content
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat
from specllama.server.tools.generic import GenericFormat
from specllama.server.tools.grammar import calls_grammar
from specllama.server.tools.hermes import HermesFormat
from specllama.server.tools.llama3 import Llama3Format
from specllama.server.tools.mistral import MistralArgsFormat, MistralFormat
from specllama.server.tools.reader import CallReader
from specllama.server.tools.recognise import call_format
from specllama.server.tools.schema import expressible
from specllama.server.tools.tool import Tool
from tool_models import ADD, SCRIPTS

Open = Callable[..., SpecSession]
FORMATS: dict[str, type[CallFormat]] = {
    "hermes": HermesFormat, "fenced": HermesFormat, "bare": HermesFormat,
    "generic": GenericFormat, "llama3": Llama3Format, "mistral": MistralFormat,
    "mistral-args": MistralArgsFormat,
}  # fmt: skip
TOOL = Tool("add", ADD["function"]["parameters"], ADD)


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, bos="<s>", eos="</s>")


@pytest.mark.parametrize("name", SCRIPTS)
def test_formats_are_recognised(name: str) -> None:
    assert type(call_format(template(SCRIPTS[name].template))) is FORMATS[name]


def test_a_template_that_tells_nothing_of_tools() -> None:
    """It has the marks, and leaves the tools out."""
    source = SCRIPTS["hermes"].template.replace("{{ t | tojson }}", "")
    assert type(call_format(template(source))) is GenericFormat


def test_tools_without_a_system_message() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
        "[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    calls = call_format(template(source))
    messages: list[Any] = [{"role": "user", "content": "Hello."}]
    prompt = template(source).render(calls.conversation(messages, [TOOL]))
    assert prompt.startswith("[user]You can call these tools")
    assert prompt.endswith("Hello.")
    # Results are what a user says, joined to what the next one does.
    called = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    messages += [
        {"role": "assistant", "content": "Well.", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        {"role": "tool", "tool_call_id": "2", "content": "4"},
    ]
    prompt = template(source).render(calls.conversation(messages, []))
    assert prompt == (
        '[user]Hello.[assistant]Well.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n'
        "</tool_call>[user]<tool_response>\n3\n</tool_response>\n<tool_response>\n4\n</tool_response>"
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_texts_in_any_parts(name: str) -> None:
    """However a text is cut into parts, the same content and calls come out."""
    text = "".join(SCRIPTS[name].pieces)
    found = set()
    for size in (1, 2, 3, 7, len(text)):
        reader = CallReader(FORMATS[name](), [TOOL])
        parts = [
            part for at in range(0, len(text), size) for part in reader.push(text[at : at + size])
        ]
        parts += reader.finish()
        content = "".join(part.text for part in parts if isinstance(part, Content))
        names = tuple(part.name for part in parts if isinstance(part, CallBegun))
        arguments = ["" for _ in names]
        for part in parts:
            if isinstance(part, Arguments):
                arguments[part.index] += part.text
        found.add((content, names, *arguments))
    assert len(found) == 1
    ((content, names, first, *_),) = found
    assert names[0] == "add"
    assert json.loads(first) == {"a": 1, "b": 2}


def test_braces_in_strings_end_nothing() -> None:
    arguments = json.dumps({"a": '}"\\}', "b": [{"c": "]"}]})
    reader = CallReader(HermesFormat(), [TOOL])
    text = f'<tool_call>\n{{"name": "add", "arguments": {arguments}}}\n</tool_call>'
    parts = [part for one in text for part in reader.push(one)]
    assert "".join(part.text for part in parts if isinstance(part, Arguments)) == arguments


def test_what_only_looks_like_a_call() -> None:
    reader = CallReader(HermesFormat(), [TOOL])
    assert reader.push("x <tool_") == [Content("x")]
    assert reader.push("box> y") == [Content(" <tool_box> y")]
    assert reader.push(" <tool_call> is how") == []
    assert reader.finish() == [Content(" <tool_call> is how")]
    reader = CallReader(HermesFormat(), [TOOL])
    shown = 'It is {"name": "subtract", "arguments": {}}.'
    assert reader.push(shown) == [Content(shown)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"title": "A"}, {}),
        (True, {}),
        ({"type": "integer", "minimum": 3}, {"type": "integer", "minimum": 3}),
        ({"type": "number", "minimum": 3}, {"type": "number"}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "string", "pattern": r"^\d+$"}, {"type": "string", "pattern": r"^\d+$"}),
        ({"type": "string", "pattern": "^(?=a).$"}, {"type": "string"}),
        ({"type": "string", "pattern": "a"}, {"type": "string"}),
        ({"type": "string", "pattern": "^.{1,2000}$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^([a-z]{1,63}-){1,40}$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "^[a-z]+$"}),
        ({"type": "string", "maxLength": 70_000}, {"type": "string"}),
        ({"type": "string", "maxLength": 500}, {"type": "string", "maxLength": 500}),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 5}),
        ({"enum": ["\u00e9", "x\\y"]}, {"enum": ["\u00e9", "x\\y"]}),
        ({"type": "string", "enum": ["x"]}, {"enum": ["x"]}),
        ({"allOf": [{"type": "null"}]}, {"type": "null"}),
        ({"$ref": "https://example.org"}, {}),
        ({"type": "array", "items": {}}, {"type": "array", "items": {}}),
        ({"properties": {"b": {"type": "null"}}, "additionalProperties": True},
         {"type": "object", "properties": {"b": {"type": "null"}}, "required": []}),
    ],
)  # fmt: skip
def test_schemas(schema: Any, expected: dict[str, Any]) -> None:
    whole = {"type": "object", "properties": {"a": schema}}
    assert expressible(whole, "parameters")["properties"]["a"] == expected


def test_schemas_without_properties() -> None:
    for schema in ({}, {"type": "object"}, {"anyOf": [{"type": "object"}]}):
        assert expressible(schema, "parameters") == {"type": "object"}
    none = {"type": "object", "properties": {}}
    assert expressible(none, "parameters") == none


def test_a_schema_that_grows_without_end() -> None:
    """Types upon types double with every level; they are not followed."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(14):
        schema = {"type": ["object", "array"], "properties": {"a": schema}, "items": schema}
    schema = {"type": "object", "properties": {"a": schema}}
    assert expressible(schema, "parameters") == {"type": "object"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(ApiError, match="nests at most 32 deep"):
        expressible(schema, "parameters")


def several(n: int, **parameters: Any) -> list[Tool]:
    names = [f"mcp__some_server__a_tool_with_a_long_name_{i}" for i in range(n)]
    return [Tool(name, {"type": "object", **parameters}, {}) for name in names]


@pytest.mark.parametrize("name", FORMATS)
def test_as_many_tools_as_there_may_be(open_session: Open, name: str) -> None:
    calls, tools = FORMATS[name](), several(128)
    grammar = calls_grammar(ToolChoice(tools, tools, False, True), calls)
    session = open_session(draft=None)
    options: dict[str, Any] = {"grammar": grammar, "max_tokens": 8}
    said = session.generate("x", **options).text
    free = session.generate("x", grammar_triggers=calls.openings(tools), **options).text
    assert said != free == session.generate("x", max_tokens=8).text


def test_lengths_go_before_all_else(open_session: Open) -> None:
    text = {"type": "string", "maxLength": 2000}
    tools = several(2, properties={f"p{i}": text for i in range(40)})
    grammar = calls_grammar(ToolChoice(tools, tools, True, True), HermesFormat())
    assert "p39" in grammar
    assert "block" not in grammar
    open_session(draft=None).generate("x", grammar=grammar, max_tokens=2)


def test_more_rules_than_a_grammar_may_have(open_session: Open) -> None:
    """Bounds of that many integers; the arguments are any JSON then."""
    session = open_session(draft=None)
    for n, is_loose in ((20, False), (200, True)):
        bounded = {f"p{i}": {"type": "integer", "minimum": 1} for i in range(n)}
        tools = several(2, properties=bounded, required=[*bounded])
        grammar = calls_grammar(ToolChoice(tools, tools, True, True), HermesFormat())
        assert ("p19" not in grammar) is is_loose
        session.generate("x", grammar=grammar, max_tokens=2)
