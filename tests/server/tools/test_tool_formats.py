"""Formats of tool calls: recognition, schemas as grammars, parsing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from grammar_draws import accepts, of_lark, of_prepared
from session_options import Open
from specllama.dialogue.answer_parts import Arguments, CallBegun, Content
from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.grammar import AnswerGrammar
from specllama.dialogue.tools.reader import CallReader
from specllama.dialogue.tools.recognise import call_format
from specllama.dialogue.tools.tool import Tool
from specllama.model.chat_template import ChatTemplate
from specllama.model.marks import NAME
from specllama.requests.schema.grammar import schema_grammar
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.tools.read_tools import CHAT, read_tools
from tool_models import ADD, SCRIPTS

FORMATS = {
    name: call_format(ChatTemplate(script.template, bos="<s>", eos="</s>"))
    for name, script in SCRIPTS.items()
}
HERMES = FORMATS["hermes"]
_TAGGED = '<tool_call>\n{"name": "@", "arguments": '
HEADS = {
    "hermes": _TAGGED, "fenced": _TAGGED, "bare": _TAGGED, "generic": _TAGGED,
    "llama3": '{"name": "@", "parameters": ',
    "mistral": '{"name": "@", "arguments": ',
    "mistral-args": "[TOOL_CALLS]@[ARGS]",
    "parameters": "<tool_call>\n<function=@>\n",
    "quotes": "<|tool_call>call:@{",
}  # fmt: skip
(TOOL,) = read_tools(Fields({"tools": [ADD]}), CHAT)


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, bos="<s>", eos="</s>")


@pytest.mark.parametrize("name", SCRIPTS)
def test_formats_are_recognised_by_their_templates(name: str) -> None:
    calls = FORMATS[name]
    assert calls.shapes[0].head.replace(NAME, "@") == HEADS[name]
    assert calls.source == ("fallback" if name == "generic" else "template")
    assert calls.manner.short_ids == (name == "mistral")


def test_a_template_without_tools_gets_a_message_that_describes_them() -> None:
    """The template has the marks, but omits the tools."""
    source = SCRIPTS["hermes"].template.replace("{{ t | tojson }}", "")
    calls = call_format(template(source))
    assert not calls.describes
    prompt = template(source).render(calls.conversation([{"role": "user", "content": "?"}], [TOOL]))
    assert "You can call these tools" in prompt
    assert '{"name": "the_name", "arguments": {"an_argument": "its value"}}' in prompt


def test_tools_go_into_the_first_message_if_the_template_has_no_system_role() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
        "[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    calls = call_format(template(source))
    messages: list[Any] = [{"role": "user", "content": "Hello."}]
    prompt = template(source).render(calls.conversation(messages, [TOOL]))
    assert prompt.startswith("[user]You can call these tools")
    assert prompt.endswith("Hello.")
    # Results become user messages, joined with the next one.
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
def test_calls_are_found_however_the_text_is_chunked(name: str) -> None:
    """The chunks do not change the content and the calls."""
    text = "".join(SCRIPTS[name].pieces)
    found = set()
    for size in (1, 2, 3, 7, len(text)):
        reader = CallReader(FORMATS[name], [TOOL])
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


def test_braces_in_strings_do_not_end_arguments() -> None:
    arguments = json.dumps({"a": '}"\\}', "b": [{"c": "]"}]})
    reader = CallReader(HERMES, [TOOL])
    text = f'<tool_call>\n{{"name": "add", "arguments": {arguments}}}\n</tool_call>'
    parts = [part for one in text for part in reader.push(one)]
    assert "".join(part.text for part in parts if isinstance(part, Arguments)) == arguments


def test_text_that_resembles_a_call_stays_text() -> None:
    reader = CallReader(HERMES, [TOOL])
    assert reader.push("x <tool_") == [Content("x")]
    assert reader.push("box> y") == [Content(" <tool_box> y")]
    assert reader.push(" <tool_call> is how") == []
    assert reader.finish() == [Content(" <tool_call> is how")]
    # If only calls are allowed, a cut call is not content.
    reader = CallReader(HERMES, [TOOL], only=True)
    assert reader.push(' <tool_call>\n{"name": "ad') == []
    assert reader.finish() == []
    reader = CallReader(HERMES, [TOOL])
    shown = 'It is {"name": "subtract", "arguments": {}}.'
    assert reader.push(shown) == [Content(shown)]


POINT = {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}


def tool(parameters: Any, name: str = "f", strict: bool = False) -> Tool:
    function = {"name": name, "parameters": parameters, "strict": strict}
    (found,) = read_tools(Fields({"tools": [{"type": "function", "function": function}]}), CHAT)
    return found


def allows(one: Tool, arguments: Any) -> bool:
    return accepts(of_prepared(one.arguments.text), json.dumps(arguments))


@pytest.mark.parametrize(
    ("parameters", "may_come", "may_not"),
    [
        ({}, [{}, {"a": 1}], [[], None]),
        ({"type": None, "properties": None}, [{"a": 1}], [[]]),
        ({"type": "object", "properties": {}}, [{}], [{"a": 1}]),
        ({"type": ["object", "null"], "properties": {"a": {}}}, [{"a": 1}], [None, {"b": 1}]),
        ({"type": "list", "properties": {"a": None}}, [{"a": 1}], [[]]),
        ({"properties": {"a": {"type": "string", "maxLength": 2.0}}}, [{"a": "x"}], [{"a": "xyz"}]),
        ({"properties": {"a": {"type": "any"}, "b": False}}, [{"a": 1}], [{"b": 1}]),
        ({"properties": {"a": {"type": "int", "required": True}}}, [{"a": 1}], [{}]),
        ({"properties": []}, [{}], [{"a": 1}]),
        ({"properties": {"a": {"enum": [], "type": "float"}}}, [{"a": 1.5}], [{"a": "x"}]),
        ({"allOf": [POINT, {"properties": {"y": {"type": "null"}}, "required": ["y"]}]},
         [{"x": 1, "y": None}], [{"x": 1}, {"x": 3, "y": None}]),
        ({"properties": {"x": {"const": 1}, "y": {"const": 2}},
          "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
         [{"x": 1}, {"y": 2}, {"x": 1, "y": 2}], [{}]),
        ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, [{"x": 1}], [{"x": 3}, {}]),
        ({"anyOf": [{"type": "null"}, POINT]}, [{"x": 2}], [None, {}]),
        ({"properties": {"env": {"type": "object", "additionalProperties": False,
                                 "patternProperties": {"^[A-Z]+$": {"type": "string"}}}}},
         [{"env": {"PATH": "/bin"}}], [{"env": {"path": "/bin"}}]),
        ({"properties": {"a": {"type": "string", "pattern": "(?=a)"}}}, [{"a": "b"}], [{"a": 1}]),
        ({"properties": {"a": {"$ref": "https://example.org", "type": "null"}}},
         [{"a": None}], [{"a": 1}]),
    ],
)  # fmt: skip
def test_argument_grammars_follow_their_schema(
    parameters: Any, may_come: list[Any], may_not: list[Any]
) -> None:
    found = tool(parameters)
    assert all(allows(found, one) for one in may_come)
    assert not any(allows(found, one) for one in may_not)


UNCLEAR: list[Any] = [
    {"properties": {"a": {"type": "text?"}}},
    {"properties": {"a": 5}},
    {"properties": {"a": {"anyOf": {}}}},
    {"properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}}, "required": ["a"]},
    {"properties": {"a": {"type": "string", "enum": [1]}}, "required": ["a"]},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
    {"properties": {f"p{n}": {} for n in range(5000)}},
]


@pytest.mark.parametrize("parameters", UNCLEAR)
def test_a_tool_with_an_unclear_schema_takes_any_object(parameters: Any) -> None:
    """A warning reports it, and the schemas of the other tools are enforced."""
    loose, other = tool(parameters), tool(POINT, "other")
    assert allows(loose, {"z": [1]})
    assert not allows(loose, [])
    (warning,) = loose.arguments.warnings
    assert re.fullmatch("the schema (has|allows|cannot) .*, so any object is accepted", warning)
    choice = ToolChoice([loose, other], [loose, other], True, True)
    grammar = of_lark(AnswerGrammar().calls(choice, HERMES))
    call = '{{"name": "{}", "arguments": {}}}'
    assert accepts(grammar, call.format("f", '{"z": [1]}'))
    assert accepts(grammar, call.format("other", '{"x": 1}'))
    assert not accepts(grammar, call.format("other", '{"z": [1]}'))


@pytest.mark.parametrize("parameters", [*UNCLEAR, {"properties": {"a": {"not": {"const": 1}}}}])
def test_a_strict_tool_with_an_unclear_schema_is_refused(parameters: Any) -> None:
    with pytest.raises(ApiError) as told:
        tool(parameters, strict=True)
    assert told.value.param == "tools[0].function.parameters"
    assert str(told.value).startswith("tools[0].function.parameters ")


def test_tool_warnings_name_keywords_that_are_not_enforced() -> None:
    schema = {"type": "array", "items": {}, "uniqueItems": True}
    found = tool({"properties": {"a": schema}})
    assert found.arguments.warnings == ['"uniqueItems" is not enforced']
    assert allows(found, {"a": [1, 1]})


CALLS = {
    "hermes": ['<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>',
               '```json\n{\n  "name": "f",\n  "arguments": {"x": 1}\n}\n```',
               '{"name": "f", "arguments": {"x": 1}}'],
    "llama3": ['{"name": "f", "parameters": {"x": 1}}'],
    "mistral": ['[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}, "id": "abcdef123"}]'],
    "mistral-args": ['[TOOL_CALLS]f[ARGS]{"x": 1}'],
    "parameters": ["<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n"
                   "</tool_call>"],
    "quotes": ["<|tool_call>call:f{x:1}<tool_call|>"],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("closing", ["", "</think>"])
def test_call_grammars_accept_calls_only(name: str, closing: str) -> None:
    one = tool(POINT)
    choice = ToolChoice([one], [one], True, False)
    grammar = of_lark(AnswerGrammar(closing).calls(choice, FORMATS[name]))
    for call in CALLS[name]:
        assert accepts(grammar, closing + call)
        assert accepts(grammar, f"{closing}\n\n{call}") == bool(closing)
        other = call.replace("1}", "3}").replace("\n1\n", "\n3\n")
        for wrong in (other, call.replace("f", "g"), f"{call}{call}"):
            assert not accepts(grammar, closing + wrong)


def test_answer_grammars_accept_an_answer_or_a_call() -> None:
    one, answer = tool(POINT), schema_grammar({"type": "object", "properties": {"b": {"const": 1}}})
    choice = ToolChoice([one], [one], False, True)
    grammar = of_lark(AnswerGrammar().calls(choice, HERMES, answer))
    for text in (*CALLS["hermes"], '{"b": 1}', "\n".join(CALLS["hermes"][:1] * 2)):
        assert accepts(grammar, text)
    assert not accepts(grammar, '{"b": 2}')
    assert accepts(of_lark(AnswerGrammar("</think>").answer(answer)), '</think>\n{"b": 1}')


def test_call_grammars_accept_control_tokens() -> None:
    one = tool(POINT)
    choice = ToolChoice([one], [one], True, True)
    control = {"[TOOL_CALLS]": 5, "[ARGS]": 7}
    grammar = AnswerGrammar("", control).calls(choice, FORMATS["mistral-args"])
    assert '("[TOOL_CALLS]" | <[5]>) "f" ("[ARGS]" | <[7]>) arguments_0' in grammar
    assert accepts(of_lark(grammar), CALLS["mistral-args"][0])


def several(n: int, **parameters: Any) -> list[Tool]:
    names = [f"mcp__some_server__a_tool_with_a_long_name_{i}" for i in range(n)]
    functions = [{"name": name, "parameters": parameters} for name in names]
    given = [{"type": "function", "function": function} for function in functions]
    return read_tools(Fields({"tools": given}), CHAT)


@pytest.mark.parametrize("name", FORMATS)
def test_the_largest_number_of_tools_works(open_session: Open, name: str) -> None:
    text = {"type": "string", "maxLength": 2000}
    tools = several(128, properties={f"p{i}": text for i in range(40)})
    calls = FORMATS[name]
    grammar = AnswerGrammar().calls(ToolChoice(tools, tools, False, True), calls)
    session = open_session(draft=None)
    options: dict[str, Any] = {"grammar": grammar, "max_tokens": 8}
    said = session.generate("x", **options).text
    free = session.generate("x", grammar_triggers=calls.openings(tools), **options).text
    assert said != free == session.generate("x", max_tokens=8).text


def test_tool_schemas_beyond_the_limit_are_not_enforced() -> None:
    tools = several(128, properties={f"p{i}": {"type": "string"} for i in range(40)})
    warnings = [one.arguments.warnings for one in tools]
    loose = ["all tools' schemas together are too long, so any object is accepted"]
    assert [] in warnings
    assert loose in warnings
