"""Tool calls in chat completions, in every format: what a scripted model says is known."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from scripted_model import write_scripted_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import ArgumentError, SpecSession
from specllama.requests.background import submitted
from specllama.server.chat_completion import ChatCompletion
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.settings import Settings
from tool_models import ADD, NOW, SCRIPTS, TOOLS

MESSAGES: list[Any] = [{"role": "user", "content": "u"}]
SCRIPTED = {**EXACT, **FIXED, "kv_type": "f16"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """A server for every format."""
    folder = tmp_path_factory.mktemp("tools")
    with ExitStack() as stack:
        found = {}
        for name, script in SCRIPTS.items():
            path = folder / f"{name}.gguf"
            write_scripted_model(
                path, script.pieces, control=script.control, chat_template=script.template,
                n_ctx=2048, any_text=True,
            )  # fmt: skip
            session = stack.enter_context(SpecSession(path, **SCRIPTED))
            found[name] = stack.enter_context(serve(session))
        yield found


def chat(server: Server, **options: Any) -> Any:
    options = {"messages": MESSAGES, "model": "m", "temperature": 0, "tools": TOOLS} | options
    return server.openai().chat.completions.create(**options)


def called(message: Any) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls
    ]


CALLED = [("add", {"a": 1, "b": 2}), ("now", {})]


@pytest.mark.parametrize("name", SCRIPTS)
def test_tool_calls_of_every_format_are_found(servers: dict[str, Server], name: str) -> None:
    script = SCRIPTS[name]
    (choice,) = chat(servers[name]).choices
    assert called(choice.message) == CALLED[: script.calls]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == ("Let me add." if "Let" in script.pieces[0] else None)
    ids = [call.id for call in choice.message.tool_calls]
    assert len(set(ids)) == script.calls
    assert all(one.startswith("call_") for one in ids)


@pytest.mark.parametrize("name", SCRIPTS)
def test_streamed_tool_calls_equal_the_whole_ones(servers: dict[str, Server], name: str) -> None:
    whole = chat(servers[name]).choices[0].message
    content, names, arguments, reasons = "", [], [], []
    for event in chat(servers[name], stream=True):
        (choice,) = event.choices
        content += choice.delta.content or ""
        for call in choice.delta.tool_calls or []:
            if call.id is not None:
                assert (call.type, call.function.arguments) == ("function", "")
                names.append(call.function.name)
                arguments.append("")
            assert call.index == len(names) - 1
            arguments[call.index] += call.function.arguments
        reasons.append(choice.finish_reason)
    assert content == (whole.content or "")
    assert names == [call.function.name for call in whole.tool_calls]
    assert arguments == [call.function.arguments for call in whole.tool_calls]
    assert reasons == [*[None] * (len(reasons) - 1), "tool_calls"]
    # Arguments come in parts, as the model writes them.
    assert len(reasons) > 6


def test_tool_choice_is_enforced(servers: dict[str, Server]) -> None:
    server = servers["hermes"]
    for choice in ("required", {"type": "function", "function": {"name": "add"}}):
        message = chat(server, tool_choice=choice, max_tokens=300).choices[0].message
        assert message.content is None
        assert called(message)[0][0] == "add"
    now = {"type": "function", "function": {"name": "now"}}
    assert called(chat(server, tool_choice=now).choices[0].message) == [("now", {})]
    none = chat(server, tool_choice="none").choices[0]
    assert none.message.tool_calls is None
    assert "<tool_call>" in none.message.content  # which is nothing but text then
    assert none.finish_reason == "stop"
    one = chat(server, parallel_tool_calls=False).choices[0]
    assert called(one.message) == CALLED[:1]


def allowed(*names: str, mode: str = "required") -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_allowed_tools_restrict_chat_calls_but_not_the_prompt(servers: dict[str, Server]) -> None:
    """The others stay in the prompt, so that it begins as before."""
    server = servers["hermes"]
    one = chat(server, tool_choice=allowed("now", "now"))
    assert {name for name, _ in called(one.choices[0].message)} == {"now"}
    assert one.usage.prompt_tokens == chat(server).usage.prompt_tokens
    both = chat(server, tool_choice=allowed("add", "now", mode="auto")).choices[0]
    assert both.message.content == "Let me add."
    assert called(both.message) == CALLED
    none = chat(server, tool_choice=allowed(mode="auto")).choices[0]
    assert none.message.tool_calls is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("stop", "reason"), [(": 1", "stop"), ('"now"', "tool_calls")])
def test_finish_reason_of_a_call_cut_by_a_stop_string(
    servers: dict[str, Server], stop: str, reason: str, stream: bool
) -> None:
    """Clients take what comes with "tool_calls" for whole calls."""
    answer = chat(servers["hermes"], stop=stop, stream=stream)
    last = list(answer)[-1] if stream else answer
    assert last.choices[0].finish_reason == reason


def test_calls_cut_by_max_tokens_keep_their_beginning(servers: dict[str, Server]) -> None:
    n = len(SCRIPTS["hermes"].pieces)
    texts = set()
    for most in range(1, n):
        (choice,) = chat(servers["hermes"], max_tokens=most).choices
        assert choice.finish_reason == "length"
        calls = choice.message.tool_calls or []
        texts.add((choice.message.content, *(call.function.arguments for call in calls)))
    assert ("Let me add.", '{"a": 1') in texts
    # What may begin a call is given in the end, if it did not.
    assert any(text[0] is not None and text[0].endswith(" <tool") for text in texts)


def test_arguments_follow_their_schema(servers: dict[str, Server]) -> None:
    """The script calls add with 1 and 2, and may not."""
    for allowed in ("add", "plus"):
        schema = {"type": "object", "properties": {"c": {"enum": [1, 12]}}, "required": ["c"]}
        tool = {"type": "function", "function": {"name": allowed, "parameters": schema}}
        one = chat(servers["hermes"], tools=[tool], max_tokens=400, parallel_tool_calls=False)
        message = one.choices[0].message
        name, arguments = called(message)[0]
        assert name == allowed
        assert arguments["c"] in (1, 12)


def test_response_format_allows_an_answer_or_a_call(servers: dict[str, Server]) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    choice = chat(servers["hermes"], response_format=wanted, max_tokens=400).choices[0]
    if choice.message.tool_calls:
        assert called(choice.message)
    else:
        assert list(json.loads(choice.message.content)) == ["b"]
    must = chat(servers["hermes"], response_format=wanted, tool_choice="required", max_tokens=400)
    assert called(must.choices[0].message)


@pytest.mark.parametrize("name", SCRIPTS)
def test_tool_results_continue_the_conversation(servers: dict[str, Server], name: str) -> None:
    server = servers[name]
    message = chat(server).choices[0].message
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": "a result"}
        for call in message.tool_calls
    ]
    messages = [*MESSAGES, message.to_dict(), *results, {"role": "user", "content": "u"}]
    longer = chat(server, messages=messages)
    assert longer.usage.prompt_tokens > chat(server).usage.prompt_tokens
    assert called(longer.choices[0].message)
    # Also without tools, which a front end may leave out later.
    assert chat(server, messages=messages, tools=None, max_tokens=5).choices[0].message.content


@pytest.mark.parametrize("name", SCRIPTS)
def test_apply_template_includes_the_tools(servers: dict[str, Server], name: str) -> None:
    """By it editors count what a conversation takes."""
    server = servers[name]
    answer = server.post("/apply-template", {"messages": MESSAGES, "tools": TOOLS})
    text = {"content": answer.json()["prompt"], "add_special": True}
    tokens = server.post("/tokenize", text).json()["tokens"]
    assert len(tokens) == chat(server, max_tokens=1).usage.prompt_tokens
    broken_one = {"messages": MESSAGES, "tools": [{"type": "retrieval"}]}
    refused = server.post("/apply-template", broken_one)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "tools[0].type"


def test_tool_calls_come_with_several_choices_and_logprobs(servers: dict[str, Server]) -> None:
    answer = chat(servers["hermes"], n=2, logprobs=True)
    assert [called(choice.message) for choice in answer.choices] == [CALLED, CALLED]
    n_tokens = len(answer.choices[0].logprobs.content)
    streamed = [
        one
        for event in chat(servers["hermes"], logprobs=True, stream=True)
        if event.choices[0].logprobs
        for one in event.choices[0].logprobs.content
    ]
    assert len(streamed) == n_tokens > 10


def broken(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f"} | changes}


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
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
        ({"tool_choice": allowed()}, "tool_choice.allowed_tools.mode"),
        ({"tool_choice": allowed("add", "g")}, "tool_choice.allowed_tools.tools[1].function.name"),
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
    """What cannot be enforced is left to the model."""
    parameters = {"type": "object", "properties": {"$ref": schema}}
    messages = chat(servers["hermes"], tools=[ADD, NOW, broken(parameters=parameters)])
    assert called(messages.choices[0].message) == CALLED


@pytest.mark.parametrize("stream", [False, True])
def test_warnings_name_what_is_not_enforced_in_calls(
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
        ({"id": "1", "function": {"name": "f", "arguments": []}}, "[0].function.arguments"),
        ({"id": "1", "function": {"name": "f", "arguments": "[]"}}, "[0].function.arguments"),
    ],
)
def test_bad_tool_calls_in_messages_are_named(
    servers: dict[str, Server], call: Any, param: str
) -> None:
    messages = [{"role": "assistant", "tool_calls": [call]}]
    with pytest.raises(openai.BadRequestError) as caught:
        chat(servers["hermes"], messages=messages)
    assert caught.value.param == f"messages[0].tool_calls{param}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_conversation_continues_after_a_cut_tool_call(
    servers: dict[str, Server], name: str
) -> None:
    function = {"name": "add", "arguments": '{"a": 12, "b'}
    call = {"id": "abcd12345", "type": "function", "function": function}
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcd12345", "content": "cut"},
    ]
    body = {"messages": messages, "tools": TOOLS}
    assert '\\"a\\": 12' in servers[name].post("/apply-template", body).json()["prompt"]
    answer = chat(servers[name], messages=messages)
    assert called(answer.choices[0].message) == CALLED[: SCRIPTS[name].calls]


@pytest.mark.parametrize(
    "arguments", ['{"\\ud800": ["\\ud83d\\ude00", "\\ude00"]}', '{"a": "\ud800']
)
def test_lone_surrogates_in_arguments_are_replaced(
    servers: dict[str, Server], arguments: str
) -> None:
    """Models may write such; the conversation goes on."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    messages = [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": [call]}]
    body = json.dumps({"messages": messages, "tools": TOOLS}).encode()
    for server in servers.values():
        prompt = server.post("/apply-template", body).json()["prompt"]
        assert re.search(r"\N{REPLACEMENT CHARACTER}|\\ufffd", prompt)


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
    """Return a copy in which one part is something else."""
    if not isinstance(value, (dict, list)) or not value or random_.random() < 0.15:
        return random_.choice([one for one in WRONG if type(one) is not type(value)])
    if isinstance(value, list):
        i = random_.randrange(len(value))
        return [damaged(one, random_) if k == i else one for k, one in enumerate(value)]
    name = random_.choice(list(value))
    return {key: damaged(one, random_) if key == name else one for key, one in value.items()}


RICH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 9},
        "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        "kind": {"enum": ["a", 1, None]},
        "one": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Point"}]},
        "all": {"allOf": [{"$ref": "#/$defs/Point"}]},
        "map": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
        "pair": {"type": "array", "prefixItems": [{"type": "boolean"}, {"const": 3}]},
        "when": {"type": "string", "format": "date-time"},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
}


def test_a_thousand_damaged_tool_requests_are_answered_or_refused(
    servers: dict[str, Server],
) -> None:
    """Each is answered or refused with the name of a field, whatever was damaged."""
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
            handles = submitted(session, call.prepare())  # the grammar is read when it begins
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
