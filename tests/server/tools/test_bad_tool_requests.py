"""Unusual, damaged and refused tools and calls."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import openai
import pytest
from bodies import SCHEMA
from serving import Server
from specllama import ArgumentError
from specllama.requests.background import submitted
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.openai.chat_completion import ChatCompletion
from specllama.server.settings import Settings
from tool_models import ADD, CALLED, MESSAGES, NOW, TOOLS, allowed_tools, called, chat


def broken(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f"} | changes}


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools"),
        ({"tools": [{"type": 5}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [broken(name=5)]}, "tools[0].function.name"),
        ({"tools": [broken(name="a b")]}, "tools[0].function.name"),
        ({"tools": [ADD, NOW, ADD]}, "tools[2].function.name"),
        ({"tools": [broken(description=1)]}, "tools[0].function.description"),
        ({"tools": [broken(strict=1)]}, "tools[0].function.strict"),
        ({"tools": [broken(parameters=[])]}, "tools[0].function.parameters"),
        ({"tools": [NOW] * 200}, "tools"),
        ({"tools": [broken(parameters={"properties": {"a": {"type": "odd"}}}, strict=True)]},
         "tools[0].function.parameters"),
        ({"tools": [broken(parameters={"properties": {"a": {"not": {"const": 1}}}}, strict=True)]},
         "tools[0].function.parameters"),
        ({"tools": None, "tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function.name"),
        ({"tool_choice": {"function": {"name": "g"}}}, "tool_choice.function.name"),
        ({"tool_choice": {"type": "custom", "custom": {"name": "add"}}}, "tool_choice.type"),
        ({"tool_choice": allowed_tools()}, "tool_choice.allowed_tools.mode"),
        ({"tool_choice": allowed_tools("add", "g")},
         "tool_choice.allowed_tools.tools[1].function.name"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.allowed_tools.tools"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"extra_body": {"grammar": 'root ::= "x"'}}, "grammar"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [*MESSAGES, {"role": "bot", "content": "x"}]}, "messages[1].role"),
    ],
)  # fmt: skip
def test_bad_tool_requests_name_the_field(
    servers: dict[str, Server], options: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(servers["hermes"], **options)
    assert caught.value.param == param
    assert param in caught.value.message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": -(10**400)},
        {"type": "integer", "minimum": 10**400},
        {"allOf": [{"pattern": "^a+$"}, {"pattern": "^b+$"}]},
        {"type": "string", "pattern": "^" + "(" * 600 + "a" + ")" * 600 + "$"},
        {"const": {"$ref": 5}},
        {"anyOf": [{"$ref": "#/properties/$ref"}, {"type": "null"}]},
    ],
)
def test_unusual_schemas_of_tools_are_accepted(servers: dict[str, Server], schema: Any) -> None:
    """Keywords that cannot be enforced are left to the model."""
    parameters = {"type": "object", "properties": {"$ref": schema}}
    messages = chat(servers["hermes"], tools=[ADD, NOW, broken(parameters=parameters)])
    assert called(messages.choices[0].message) == CALLED


@pytest.mark.parametrize("stream", [False, True])
def test_warnings_name_keywords_not_enforced_in_calls(
    servers: dict[str, Server], stream: bool
) -> None:
    odd = broken(parameters={"properties": {"a": {"type": "array", "uniqueItems": True}}})
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}
    answer = chat(servers["hermes"], tools=[ADD, NOW, odd], stream=stream, **options)
    last = list(answer)[-1] if stream else answer
    assert last.warnings == ['f: "uniqueItems" is not enforced.']
    plain = chat(servers["hermes"], stream=stream, **options)
    assert not hasattr(list(plain)[-1] if stream else plain, "warnings")


@pytest.mark.parametrize(
    ("call", "param"),
    [
        ("x", "[0]"),
        ({"type": "function", "function": {"name": "f"}}, "[0].id"),
        ({"id": "1"}, "[0].function"),
        ({"id": "1", "function": {}}, "[0].function.name"),
        ({"id": "1", "function": {"name": "f", "arguments": [1]}}, "[0].function.arguments"),
        ({"id": "1", "function": {"name": "f", "arguments": 5}}, "[0].function.arguments"),
    ],
)
def test_bad_tool_calls_in_messages_are_named(
    servers: dict[str, Server], call: Any, param: str
) -> None:
    messages = [{"role": "assistant", "tool_calls": [call]}]
    with pytest.raises(openai.BadRequestError) as caught:
        chat(servers["hermes"], messages=messages)
    assert caught.value.param == f"messages[0].tool_calls{param}"


@pytest.mark.parametrize(
    "arguments", ['{"\\ud800": ["\\ud83d\\ude00", "\\ude00"]}', '{"a": "\ud800']
)
def test_lone_surrogates_in_arguments_are_replaced(
    servers: dict[str, Server], arguments: str
) -> None:
    """Models may write them, and the conversation must continue."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    messages = [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": [call]}]
    body = json.dumps({"messages": messages, "tools": TOOLS}).encode()
    for name, server in servers.items():
        prompt = server.post("/apply-template", body).json()["prompt"]
        # A template that writes each parameter separately omits those of a cut object.
        left_out = name in ("parameters", "quotes") and not arguments.endswith("}")
        assert left_out or re.search(r"\N{REPLACEMENT CHARACTER}|\\ufffd", prompt)


def test_tool_call_ids_can_be_any_text(servers: dict[str, Server]) -> None:
    call = {"id": "\ud800", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "u", "tool_call_id": 5},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "\ud800", "content": "r"},
    ]
    body = json.dumps({"messages": messages, "tools": TOOLS, "max_tokens": 1}).encode()
    for server in servers.values():
        assert server.post("/v1/chat/completions", body).status_code == 200


WRONG: list[Any] = [7, -1.5, "x y", [], {}, [1], {"a": 1}, True, "\ud800", [[[]]], {"type": {}}]


def damaged(value: Any, random_: random.Random) -> Any:
    """Return a copy in which one part is replaced."""
    if not isinstance(value, (dict, list)) or not value or random_.random() < 0.15:
        return random_.choice([one for one in WRONG if type(one) is not type(value)])
    if isinstance(value, list):
        i = random_.randrange(len(value))
        return [damaged(one, random_) if k == i else one for k, one in enumerate(value)]
    name = random_.choice(list(value))
    return {key: damaged(one, random_) if key == name else one for key, one in value.items()}


RICH: dict[str, Any] = SCHEMA | {
    "properties": SCHEMA["properties"] | {
        "all": {"allOf": [{"$ref": "#/$defs/Point"}]},
        "map": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
        "pair": {"type": "array", "prefixItems": [{"type": "boolean"}, {"const": 3}]},
        "when": {"type": "string", "format": "date-time"},
    },
}  # fmt: skip


def test_a_thousand_damaged_tool_requests_are_answered_or_refused(
    servers: dict[str, Server],
) -> None:
    """A refusal names a field."""
    session = servers["hermes"].session
    whole = {
        "messages": [
            *MESSAGES,
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "r"}]},
        ],
        "tools": [broken(parameters=RICH), ADD],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
        "max_tokens": 1,
    }  # fmt: skip
    settings = Settings("m")
    assert ChatCompletion(session, Fields(whole), settings).prompts
    random_ = random.Random(1)
    refused = 0
    for _ in range(1000):
        name = random_.choice(list(whole))
        body = {**whole, name: damaged(whole[name], random_)}
        try:
            call = ChatCompletion(session, Fields(body), settings)
            handles = submitted(session, call.prepare(0))  # the grammar is read when it begins
            for handle in handles:
                handle.result(60)
        except (ApiError, ArgumentError) as raised:
            refused += 1
            error = raised if isinstance(raised, ApiError) else ApiError.of(raised, body)
            assert error.status == 400
            assert error.param is not None, (str(error), body)
            assert error.param.partition("[")[0].partition(".")[0] in whole
            assert error.param in str(error)
    assert refused > 600
