"""Formats of calls: how they are recognised, schemas as grammars, texts taken apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from schema_values import values
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
from specllama.server.tools.tool import Tool, unmeasured
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
    # A call that was cut off where nothing else may come is no content.
    reader = CallReader(HermesFormat(), [TOOL], only=True)
    assert reader.push(' <tool_call>\n{"name": "ad') == []
    assert reader.finish() == []
    reader = CallReader(HermesFormat(), [TOOL])
    shown = 'It is {"name": "subtract", "arguments": {}}.'
    assert reader.push(shown) == [Content(shown)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"title": "A"}, {"title": "A"}),
        (True, True),
        ({"type": "integer", "minimum": 3}, {"type": "integer", "minimum": 3}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "pattern": r"^\d+$"}, {"type": "string", "pattern": r"^\d+$"}),
        ({"type": "string", "pattern": "^(?=a).$"}, {"type": "string"}),
        ({"type": "string", "pattern": "a"}, {"type": "string"}),
        ({"type": "string", "pattern": "^.{1,2000}$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^([a-z]{1,63}-){1,40}$"}, {"type": "string"}),
        ({"type": "string", "pattern": "^a{1000000000}$"}, {"type": "string"}),
        ({"type": "string", "maxLength": 70_000}, {"type": "string"}),
        ({"type": "string", "maxLength": 500}, {"type": "string", "maxLength": 500}),
        ({"type": None, "items": None, "anyOf": None, "$ref": None}, {}),
        ({"const": None}, {"const": None}),
        ({"enum": [None, {"pattern": None}]}, {"enum": [None, {"pattern": None}]}),
        ({"allOf": [{"type": "null", "format": None}]}, {"allOf": [{"type": "null"}]}),
        ({"$ref": "https://example.org", "type": "null"}, {"type": "null"}),
        ({"$ref": "#/$defs/a"}, {}),
        ({"$ref": "#/properties/a/title", "title": None}, {}),
        ({"$ref": "#/properties/b"}, {"$ref": "#/properties/b"}),
        ({"patternProperties": {"^x": False}, "not": {"properties": {"a": False}}}, {}),
    ],
)  # fmt: skip
def test_schemas(schema: Any, expected: Any) -> None:
    whole = {"properties": {"a": schema, "b": {"pattern": "x"}}, "maxLength": 70_000}
    found = {"properties": {"a": expected, "b": {}}, "type": "object"}
    assert expressible(whole, "parameters") == found


def test_schemas_without_properties() -> None:
    for schema in ({}, {"type": "object"}, {"type": None, "properties": None}):
        assert expressible(schema, "parameters") == {"type": "object"}
    none = {"type": "object", "properties": {}}
    assert expressible(none, "parameters") == none


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "text"}, "its type must be a type or a list of types"),
        ({"enum": []}, "its enum must be a list of values, not empty"),
        ({"anyOf": {}}, "its anyOf must be a list of schemas, not empty"),
        ({"required": True}, "its required must be a list of names"),
        ({"minLength": 3, "maxLength": 2}, "its maxLength must be at least its minLength"),
        ({"$ref": 5}, "its $ref is 5"),
        ({"$ref": "#/properties/a"}, "leads back to itself"),
        (5, "5 stands where a schema must be"),
        (None, "null stands where a schema must be"),
    ],
)
def test_what_is_no_schema(schema: Any, reason: str) -> None:
    with pytest.raises(ApiError) as told:
        expressible({"properties": {"a": schema}}, "parameters")
    assert str(told.value).startswith("parameters cannot be converted: ")
    assert reason in str(told.value)
    assert told.value.param == "parameters"


POINT = {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}


@pytest.mark.parametrize(
    ("parameters", "holds"),
    [
        ({"allOf": [POINT, {"properties": {"y": {"type": "null"}}, "required": ["y"]}]},
         lambda one: one["x"] in (1, 2) and one["y"] is None),
        ({"properties": {"a": {"allOf": [POINT, {"properties": {"y": {"type": "null"}}}]}},
          "required": ["a"]},
         lambda one: one["a"]["x"] in (1, 2) and set(one["a"]) <= {"x", "y"}),
        ({"properties": {"a": {"type": "string", "enum": ["a", None, 1]}}, "required": ["a"]},
         lambda one: one == {"a": "a"}),
        ({"properties": {"a": {"$ref": "#/$defs/n", "maximum": 3}}, "required": ["a"],
          "$defs": {"n": {"type": "integer", "minimum": 2}}},
         lambda one: one["a"] in (2, 3)),
        ({"properties": {"x": {"const": 1}, "y": {"const": 2}},
          "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
         lambda one: one in ({"x": 1}, {"y": 2}, {"x": 1, "y": 2})),
        ({"properties": {"a": {"$ref": "#/properties/y"}, "y": {"const": 2}}, "required": ["a"]},
         lambda one: one["a"] == 2),
        ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, lambda one: one in ({"x": 1}, {"x": 2})),
        ({"anyOf": [{"type": "null"}, POINT]}, lambda one: one in ({"x": 1}, {"x": 2})),
        ({"required": ["a"]}, lambda one: "a" in one),
    ],
)  # fmt: skip
def test_arguments_hold_to_their_schema(
    open_session: Open, parameters: dict[str, Any], holds: Callable[[Any], bool]
) -> None:
    found = values(open_session(draft=None), expressible(parameters, "parameters"))
    assert all(map(holds, found)), found


TWO_PATTERNS = {"allOf": [{"pattern": "^a+$"}, {"pattern": "^b+$"}]}
ENDLESS: dict[str, Any] = {
    f"e{n}": {"allOf": [{"$ref": f"#/$defs/e{n - 1}", "type": "object"}] * 2} for n in range(1, 30)
}
BOTH_ALIKE = {f"b{n}": {"anyOf": [{"$ref": f"#/$defs/b{n + 1}"}] * 2} for n in range(14)}
CHAINED = {f"c{n}": {"$ref": f"#/$defs/c{n + 1}"} for n in range(2000)}


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": {"a": TWO_PATTERNS}},
        {"properties": {"a": {"type": "integer", "minimum": 10**400}}},
        {"properties": {"a": {"type": "string", "enum": [1]}}, "required": ["a"]},
        {"properties": {"a": {"const": "\ud800"}}},
        {"properties": {"a": {"$ref": "#/$defs/e29"}}, "$defs": {"e0": {}, **ENDLESS}},
        {"$ref": "#/$defs/c1", "$defs": {"c2000": {}, **CHAINED}},
        {"properties": {"a": {"$ref": "#/$defs/b0"}}, "$defs": {"b14": {"const": 1}, **BOTH_ALIKE}},
    ],
)
def test_a_tool_without_a_grammar_takes_any_arguments(
    open_session: Open, parameters: dict[str, Any]
) -> None:
    """The schemas of the others hold."""
    tool = Tool("f", expressible(parameters, "parameters"), {})
    grammar = calls_grammar(ToolChoice([tool, TOOL], [tool, TOOL], True, True), HermesFormat())
    assert "arguments-0 ::= object\n" in grammar
    assert 'arguments-1 ::= "{" space "\\"a\\""' in grammar
    open_session(draft=None).generate("x", grammar=grammar, max_tokens=2)


def test_a_schema_that_grows_without_end() -> None:
    """Types upon types double with every level; they are not followed."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(14):
        schema = {"type": ["object", "array"], "properties": {"a": schema}, "items": schema}
    tool = Tool("f", expressible({"properties": {"a": schema}}, "parameters"), {})
    loose = Tool("f", {"type": "object"}, {})
    assert grammar_of(tool) == grammar_of(loose)


@pytest.mark.parametrize(
    ("around", "n"),
    [
        (lambda inner: {"anyOf": [{"type": "object", "properties": {"a": inner}}]}, 60),
        (lambda inner: {"items": inner}, 240),
    ],
)
def test_a_schema_that_nests_deep(open_session: Open, around: Callable[[Any], Any], n: int) -> None:
    """As deep as the JSON of a request may."""
    schema: Any = {"type": "string"}
    for _ in range(n):
        schema = around(schema)
    whole = {"properties": {"a": schema}}
    tool = Tool("f", expressible(whole, "parameters"), {})
    for one in (tool, unmeasured(tool)):
        open_session(draft=None).generate("x", grammar=grammar_of(one), max_tokens=2)


def grammar_of(tool: Tool) -> str:
    return calls_grammar(ToolChoice([tool], [tool], True, True), HermesFormat())


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
