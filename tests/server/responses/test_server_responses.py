"""/v1/responses through the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from prompts import TOO_COMPLEX
from serving import Server, serve_scripted
from specllama.server import error
from specllama.server.body.fields import Fields
from specllama.server.media.request_media import RequestMedia
from specllama.server.responses.input import read_input
from tool_models import SCRIPTS, TOOLS

FLAT: list[Any] = [{"type": "function", **tool["function"]} for tool in TOOLS]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a scripted model that writes a text and calls two tools."""
    script = SCRIPTS["hermes"]
    models = {"hermes": {"pieces": script.pieces, "chat_template": script.template}}
    with serve_scripted(tmp_path_factory.mktemp("responses"), models) as found:
        yield found["hermes"]


def respond(server: Server, **options: Any) -> Any:
    options = {"model": "m", "input": "u", "temperature": 0} | options
    return server.openai().responses.create(**options)


def test_a_text_answer_has_output_and_status(server: Server) -> None:
    answer = respond(server, max_output_tokens=3)
    assert (answer.object, answer.model) == ("response", "test")
    assert answer.output_text == "Let me add."
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage.output_tokens == 3
    assert answer.usage.total_tokens == answer.usage.input_tokens + 3
    whole = respond(server)
    assert (whole.status, whole.incomplete_details) == ("completed", None)
    instructed = respond(server, instructions="Answer.", max_output_tokens=3)
    assert instructed.usage.input_tokens > answer.usage.input_tokens


def test_tool_calls_become_function_call_items(server: Server) -> None:
    """Tools that the API's owner runs are ignored, because some clients always send them."""
    answer = respond(server, tools=[{"type": "web_search"}, *FLAT, {"type": "mcp"}])
    message, add, now = answer.output
    assert (message.type, message.content[0].text) == ("message", "Let me add.")
    assert (add.type, add.name, json.loads(add.arguments)) == (
        "function_call", "add", {"a": 1, "b": 2},
    )  # fmt: skip
    assert (now.name, now.arguments) == ("now", "{}")
    assert add.call_id != now.call_id
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "3"}
        for call in (add, now)
    ]
    items = [{"role": "user", "content": "u"}, *(one.to_dict() for one in answer.output), *results]
    again = respond(server, tools=FLAT, input=items)
    assert again.usage.input_tokens > answer.usage.input_tokens
    assert again.output[1].name == "add"
    forced = respond(server, tools=FLAT, tool_choice={"type": "function", "name": "now"})
    assert [one.type for one in forced.output] == ["function_call"]
    assert forced.output[0].name == "now"


def test_a_tool_call_cut_by_a_stop_string_is_incomplete(server: Server) -> None:
    for stream in (False, True):
        answer = respond(server, tools=FLAT, stream=stream, extra_body={"stop": ": 1"})
        final = list(answer)[-1].response if stream else answer
        message, add = final.output
        assert (message.status, add.status, final.status) == (
            "completed", "incomplete", "completed",
        )  # fmt: skip
        assert add.arguments == '{"a"'


def test_allowed_tools_restrict_calls_but_not_the_prompt(server: Server) -> None:
    """The other tools stay in the prompt, so that its cached prefix fits."""
    names = [{"type": "function", "name": "now"}, {"type": "web_search"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": names}
    answer = respond(server, tools=FLAT, tool_choice=choice)
    assert [one.name for one in answer.output if one.type == "function_call"][:1] == ["now"]
    assert answer.usage.input_tokens == respond(server, tools=FLAT).usage.input_tokens


def test_a_lone_surrogate_in_a_call_is_accepted(server: Server) -> None:
    call = {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": "\\ud83d"}'}
    items = [{"role": "user", "content": "u"}, call]
    items.append({"type": "function_call_output", "call_id": "1", "output": "3"})
    assert respond(server, tools=FLAT, input=items, max_output_tokens=1).usage.output_tokens == 1


def test_streamed_events_rebuild_the_whole_response(server: Server) -> None:
    whole = respond(server, tools=FLAT)
    events = list(respond(server, tools=FLAT, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1].type == "response.completed"
    final = events[-1].response
    kinds = [(one.type, getattr(one, "name", None)) for one in final.output]
    assert kinds == [(one.type, getattr(one, "name", None)) for one in whole.output]
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(texts) == whole.output_text == "Let me add."
    arguments = {1: "", 2: ""}
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            arguments[event.output_index] += event.delta
            assert event.item_id == final.output[event.output_index].id
    assert list(arguments.values()) == [one.arguments for one in whole.output[1:]]
    for kind in ("response.output_item.added", "response.output_item.done"):
        assert [event.output_index for event in events if event.type == kind] == [0, 1, 2]
    assert all(one.status == "completed" for one in final.output)


def test_the_official_stream_helper_works(server: Server) -> None:
    with server.openai().responses.stream(model="m", input="u", temperature=0) as stream:
        final = stream.get_final_response()
    assert final.output_text == respond(server).output_text


def test_text_format_constrains_the_response(server: Server) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    wanted = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
    answer = respond(server, text=wanted, max_output_tokens=300)
    assert list(json.loads(answer.output_text)) == ["b"]


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input"),
        ({"input": [{"role": "critic", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"type": "function_call", "name": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "x"}]}, "input[0].output"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"tools": [{"type": 5}]}, "tools[0].type"),
        ({"tools": [{"type": "mcp"}, {"type": 5, "name": "x"}]}, "tools[1].type"),
        ({"tools": FLAT, "tool_choice": {"type": "function", "name": "x"}}, "tool_choice.name"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"max_output_tokens": -2}, "max_output_tokens"),
        ({"text": {"format": {"type": "json_schema", "schema": {"type": "x"}}}}, "text"),
    ],
)
def test_bad_response_requests_are_refused(
    server: Server, options: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        respond(server, **options)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": [{"role": "user", "content": "\ud800"}]}),
        ("/v1/responses", {"input": "u", "instructions": "\ud800"}),
        ("/v1/responses", {"input": "u", "tools": [FLAT[0] | {"description": "\ud800"}]}),
        ("/v1/responses", {"input": "u", "tools": [FLAT[0] | {"parameters": {"title": "\ud800"}}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a\ude00"}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "u"}],
         "prediction": {"type": "content", "content": "\ud800"}}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "\ud800"}], "max_tokens": 1}),
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "\ud800"}]}),
        ("/v1/completions", {"prompt": "u\ud800", "stop": ["\ud800"]}),
        ("/completion", {"prompt": "u\ud800"}),
        ("/tokenize", {"content": "u\ud800"}),
    ],
)  # fmt: skip
def test_half_a_character_is_replaced(server: Server, path: str, body: Any) -> None:
    """A text that a client has cut inside a character stays in its history."""
    answer = server.post(path, json.dumps({"max_tokens": 1, **body}).encode())
    assert answer.status_code == 200, answer.text


def test_unsupported_tools_and_items_are_ignored_and_logged_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Codex sends kinds of tools and items that only OpenAI's models support."""
    kinds = ("namespace", "custom", "shell", "local_shell", "apply_patch", "web_search_2031")
    tools = [{"type": one, "name": "x"} for one in kinds]
    items: list[Any] = [
        {"role": "user", "content": "u"},
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "Done!"},
        {"type": "local_shell_call", "call_id": "2", "action": {"type": "exec"}},
    ]
    error.log_once.cache_clear()
    for _ in range(2):
        answer = respond(server, tools=[*tools, *FLAT], input=items, max_output_tokens=1)
    alone = respond(server, tools=FLAT, max_output_tokens=1)
    assert answer.usage.input_tokens == alone.usage.input_tokens
    logged = [one.getMessage() for one in caplog.records if "Ignored" in one.getMessage()]
    assert len(logged) == len(set(logged)) == len(kinds) + 3


def read(server: Server, *items: dict[str, Any]) -> list[Any]:
    """Return the chat template's messages for a request with these items."""
    fields = Fields({"input": [*items]})
    return read_input(fields, RequestMedia(server.session, fields))


def test_an_image_in_a_result_does_not_end_the_conversation(server: Server) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    text = {"type": "input_text", "text": "seen"}
    call = {"type": "function_call", "call_id": "1", "name": "now", "arguments": "null"}
    output = {"type": "function_call_output", "call_id": "1", "output": [text, image]}
    messages = read(server, call, output)
    assert messages[1]["content"] == "seen\n[image: not supported]"
    assert respond(server, input=["u", call, output][1:], max_output_tokens=1).output


@pytest.mark.parametrize("arguments", ["null", "[]", "", None, []])
def test_missing_arguments_become_an_empty_object(server: Server, arguments: Any) -> None:
    call = {"type": "function_call", "call_id": "1", "name": "now", "arguments": arguments}
    (message,) = read(server, call)
    assert message["tool_calls"][0]["function"]["arguments"] == {}


def test_an_error_in_a_begun_stream_fails_the_response(server: Server) -> None:
    """The last event of the stream reports the error."""
    last = list(respond(server, stream=True, extra_body={"grammar": TOO_COMPLEX}))[-1]
    assert last.type == "response.failed"
    assert (last.response.status, last.response.error.code) == ("failed", "server_error")
    assert "grammar" in last.response.error.message


def test_reasoning_items_without_an_answer_are_left_out(server: Server) -> None:
    """An answer that was cut inside its thought has no other items."""
    said = {"role": "user", "content": "u"}
    thought = {
        "type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm, the user wants something."}],
    }  # fmt: skip
    assert read(server, said, thought) == [said]
    with pytest.raises(openai.BadRequestError, match="input is empty"):
        respond(server, input=[thought])


def test_unsupported_features_may_be_declined(server: Server) -> None:
    declined: dict[str, Any] = {"background": False, "previous_response_id": None, "prompt": None}
    assert respond(server, max_output_tokens=1, **declined).usage.output_tokens == 1
