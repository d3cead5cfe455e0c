"""Tool calls in chat completions, in every format, with scripted models."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving import Server
from tool_models import CALLED, MESSAGES, SCRIPTS, TOOLS, allowed_tools, called, chat


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
    # Arguments are sent in parts, as the model writes them.
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
    assert "<tool_call>" in none.message.content  # plain text without tools
    assert none.finish_reason == "stop"
    one = chat(server, parallel_tool_calls=False).choices[0]
    assert called(one.message) == CALLED[:1]


def test_allowed_tools_restrict_chat_calls_but_not_the_prompt(servers: dict[str, Server]) -> None:
    """The other tools stay in the prompt, so that its cached prefix fits."""
    server = servers["hermes"]
    one = chat(server, tool_choice=allowed_tools("now", "now"))
    assert {name for name, _ in called(one.choices[0].message)} == {"now"}
    assert one.usage.prompt_tokens == chat(server).usage.prompt_tokens
    both = chat(server, tool_choice=allowed_tools("add", "now", mode="auto")).choices[0]
    assert both.message.content == "Let me add."
    assert called(both.message) == CALLED
    none = chat(server, tool_choice=allowed_tools(mode="auto")).choices[0]
    assert none.message.tool_calls is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("stop", "reason"), [(": 1", "stop"), ('"now"', "tool_calls")])
def test_only_whole_calls_finish_with_tool_calls(
    servers: dict[str, Server], stop: str, reason: str, stream: bool
) -> None:
    """Clients expect whole calls with "tool_calls"."""
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
    # Text that might begin a call is sent at the end, if it did not.
    assert any(text[0] is not None and text[0].endswith(" <tool") for text in texts)


def test_arguments_follow_their_schema(servers: dict[str, Server]) -> None:
    """The schema forbids the arguments that the script writes."""
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
    """Editors use it to count the tokens of a conversation."""
    server = servers[name]
    answer = server.post("/apply-template", {"messages": MESSAGES, "tools": TOOLS})
    text = {"content": answer.json()["prompt"], "add_special": True}
    tokens = server.post("/tokenize", text).json()["tokens"]
    assert len(tokens) == chat(server, max_tokens=1).usage.prompt_tokens
    broken_one = {"messages": MESSAGES, "tools": [{"type": 5}]}
    refused = server.post("/apply-template", broken_one)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "tools[0].type"


def test_tool_calls_work_with_several_choices_and_logprobs(servers: dict[str, Server]) -> None:
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
    prompt = servers[name].post("/apply-template", body).json()["prompt"]
    # A template that writes each parameter separately gets none.
    no_arguments = {"parameters": "<function=add>\n</function>", "quotes": "call:add{}"}
    assert no_arguments.get(name, '\\"a\\": 12') in prompt
    answer = chat(servers[name], messages=messages)
    assert called(answer.choices[0].message) == CALLED[: SCRIPTS[name].calls]
