"""Chat through the official client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from scripted_model import write_scripted_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.server.body.fields import Fields
from specllama.server.body.messages import read_messages
from specllama.server.media.request_media import RequestMedia
from specllama.session import BUNDLED_MODEL

TEMPLATE = (
    "{% for m in messages %}{% if m.name == 'critic' %}{{ raise_exception('no critics') }}"
    "{% endif %}# {{ m.role }}: {{ m.content }}\n{% endfor %}{% if extra %}{{ extra }}{% endif %}"
)
MESSAGES: list[Any] = [
    {"role": "system", "content": "Write Python."},
    {"role": "user", "content": "class Stack:"},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the bundled model and a chat template."""
    model = tmp_path_factory.mktemp("chat") / "chat.gguf"
    subprocess.run(
        [sys.executable, "-m", "gguf.scripts.gguf_new_metadata",
         "--chat-template", TEMPLATE, BUNDLED_MODEL, model],
        check=True,
        capture_output=True,
    )  # fmt: skip
    with SpecSession(model, **EXACT, **FIXED) as session, serve(session) as running:
        yield running


@pytest.mark.parametrize("depth", [250, 980, 5000])
def test_tool_arguments_that_nest_deep_keep_the_connection(server: Server, depth: int) -> None:
    """If they nest too deep, they are refused in one sentence, and the connection stays usable."""
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": '{"x":' + "[" * depth + "]" * depth + "}"},
    }
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        path = "/v1/chat/completions"
        answer = client.post(path, json={"messages": messages, "max_tokens": 1})
        if depth == 250:
            assert answer.is_success
        else:
            assert answer.status_code == 400
            assert "arguments is not JSON: it nests too deep." in answer.json()["error"]["message"]
        assert client.post(path, json={"messages": MESSAGES, "max_tokens": 1}).is_success


def test_messages_that_are_lists_are_refused(server: Server) -> None:
    answer = server.post("/v1/chat/completions", {"messages": [MESSAGES]})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[0]"
    assert "messages[0] must be an object" in answer.json()["error"]["message"]


def chat(server: Server, **options: Any) -> Any:
    options = {"messages": MESSAGES, "model": "test"} | options
    return server.openai().chat.completions.create(**options)


def test_a_chat_answer_equals_the_sessions(server: Server) -> None:
    answer = chat(server, max_tokens=20, temperature=0)
    expected = server.session.chat(MESSAGES, max_tokens=20)
    assert answer.object == "chat.completion"
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", expected.text)
    assert choice.finish_reason == "length"
    assert answer.usage.prompt_tokens == expected.stats.prompt_tokens
    newer = chat(server, max_completion_tokens=7, max_tokens=20, temperature=0)
    assert newer.usage.completion_tokens == 7
    for most in (0, 5):  # llama-server's name
        short = chat(server, extra_body={"n_predict": most}, temperature=0)
        assert short.usage.completion_tokens == most


def test_a_streamed_chat_answer_equals_the_whole_one(server: Server) -> None:
    options: dict[str, Any] = {"max_tokens": 20, "temperature": 0}
    whole = chat(server, **options).choices[0].message.content
    events = list(chat(server, stream=True, stream_options={"include_usage": True}, **options))
    assert {event.object for event in events} == {"chat.completion.chunk"}
    first, *parts, last, usage = events
    assert first.choices[0].delta.role == "assistant"
    assert (
        first.choices[0].delta.content + "".join(event.choices[0].delta.content for event in parts)
        == whole
    )
    assert last.choices[0].finish_reason == "length"
    assert usage.usage.completion_tokens == 20


def test_two_choices_differ_and_can_be_streamed(server: Server) -> None:
    options: dict[str, Any] = {"n": 2, "seed": 9, "max_tokens": 10}
    answer = chat(server, **options)
    texts = [choice.message.content for choice in answer.choices]
    assert texts[0] != texts[1]
    alone = chat(server, seed=9, max_tokens=10).choices[0].message.content
    assert texts[0] == alone
    streamed = ["", ""]
    for event in chat(server, stream=True, **options):
        for choice in event.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == texts


def test_chat_answers_have_logprobs(server: Server) -> None:
    options: dict[str, Any] = {"max_tokens": 10, "temperature": 0, "logprobs": True}
    answer = chat(server, top_logprobs=2, **options)
    expected = server.session.chat(MESSAGES, max_tokens=10, logprobs=2).logprobs
    found = answer.choices[0].logprobs.content
    assert "".join(one.token for one in found) == answer.choices[0].message.content
    assert bytes(b for one in found for b in one.bytes).decode() == "".join(
        one.token for one in found
    )
    assert [one.logprob for one in found] == pytest.approx([one.logprob for one in expected])
    assert [len(one.top_logprobs) for one in found] == [2] * 10
    assert found[0].top_logprobs[0].token == found[0].token
    bare = chat(server, **options).choices[0].logprobs.content
    assert [one.top_logprobs for one in bare] == [[]] * 10
    streamed = [
        one.token
        for event in chat(server, stream=True, **options)
        if event.choices[0].logprobs
        for one in event.choices[0].logprobs.content
    ]
    assert streamed == [one.token for one in found]


def test_chat_logprobs_name_parts_of_a_character_by_bytes(tmp_path: Path) -> None:
    pieces: list[str | bytes] = [b"\xf0", b"\x9f", b"\x98", b"\x80", "!"]
    write_scripted_model(
        tmp_path / "parts.gguf", pieces, any_text=True, chat_template="{{ messages[0].content }}<s>"
    )
    with SpecSession(tmp_path / "parts.gguf", **EXACT, **FIXED) as session, serve(session) as one:
        choice = chat(one, logprobs=True, top_logprobs=3, temperature=0).choices[0]
    assert choice.message.content == "\U0001f600!"
    found = choice.logprobs.content[: len(pieces)]
    assert bytes(b for token in found for b in token.bytes) == "\U0001f600!".encode()
    names = [r"bytes:\xf0", r"bytes:\x9f", r"bytes:\x98", r"bytes:\x80", "!"]
    assert [token.token for token in found] == names
    assert [len(token.top_logprobs) for token in found] == [3] * len(pieces)
    assert all(other.bytes is not None for token in found for other in token.top_logprobs)


def test_response_format_constrains_a_chat_answer(server: Server) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = chat(server, response_format=wanted, seed=1)
    assert list(json.loads(answer.choices[0].message.content)) == ["ok"]
    assert answer.choices[0].finish_reason == "stop"


def test_prediction_raises_the_accepted_tokens(server: Server) -> None:
    """Predicted outputs of the OpenAI API: a text that the answer may copy from."""
    options: dict[str, Any] = {"max_tokens": 60, "temperature": 0.7, "seed": 4}
    plain = chat(server, **options)
    text = plain.choices[0].message.content
    helped = chat(server, prediction={"type": "content", "content": text}, **options)
    assert helped.choices[0].message.content == text
    assert helped.usage.accepted_tokens > plain.usage.accepted_tokens


def test_message_parts_and_chat_template_kwargs_are_read(server: Server) -> None:
    options: dict[str, Any] = {"max_tokens": 5, "temperature": 0}
    parts = [{"type": "text", "text": "class"}, {"type": "text", "text": "Stack:"}]
    found = chat(server, messages=[{"role": "user", "content": parts}], **options)
    expected = chat(server, messages=[{"role": "user", "content": "class\nStack:"}], **options)
    assert found.choices[0].message.content == expected.choices[0].message.content
    extra = {"chat_template_kwargs": {"extra": "import"}}
    longer = chat(server, extra_body=extra, **options)
    assert longer.usage.prompt_tokens > chat(server, **options).usage.prompt_tokens


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"messages": []}, "messages is empty"),
        (
            {"extra_body": {"chat_template_kwargs": {"messages": []}}},
            "may not have messages, which is reserved",
        ),
        ({"messages": "hello"}, "messages must be a list"),
        ({"messages": ["hello"]}, r"messages\[0\] must be an object"),
        ({"messages": [{"content": "x"}]}, r"messages\[0\].role is missing"),
        ({"messages": [{"role": "user", "name": "critic", "content": "x"}]}, "no critics"),
        (
            {"messages": [{"role": "critic", "content": "x"}]},
            r'messages\[0\].role must be "system", "developer", "user", "assistant" or "tool", not',
        ),
        ({"messages": [{"role": "user", "content": 5}]}, r"messages\[0\].content must be a string"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            r"messages\[0\].content\[0\].image_url is an image, but the model does not",
        ),
        ({"top_logprobs": 2}, "requires logprobs"),
        ({"logprobs": 2}, "logprobs must be true or false"),
        ({"messages": [{"role": 5, "content": "x"}]}, r"messages\[0\].role must be a string"),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            r"messages\[0\].tool_call_id is missing",
        ),
    ],
)
def test_bad_chat_requests_are_refused(
    server: Server, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        chat(server, **options)
    assert chat(server, tool_choice="none", tools=[], max_tokens=1)


@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_assistant_message_is_ignored(server: Server, content: Any) -> None:
    """Front ends send the message that they are about to fill."""
    body = {"messages": [*MESSAGES, {"role": "assistant", "content": content}]}
    asked = server.post("/apply-template", {"messages": MESSAGES}).json()
    assert server.post("/apply-template", body).json() == asked


def test_max_tokens_of_the_server_is_the_default_of_every_path(server: Server) -> None:
    """It is also the maximum: a request may only ask for fewer."""
    message = {"role": "user", "content": "Hello"}
    bodies: dict[str, dict[str, object]] = {
        "/v1/completions": {"prompt": "Hello"},
        "/v1/chat/completions": {"messages": [message]},
        "/v1/messages": {"messages": [message]},
        "/v1/responses": {"input": "Hello"},
    }
    with serve(server.session, sampling={"temperature": 0.0, "max_tokens": 3}) as other:
        for path, body in bodies.items():
            for asked, n in ((None, 3), (2, 2), (9, 3), (-1, 3)):
                more = {"max_tokens": asked, "max_output_tokens": asked}
                answer = other.post(path, body | more).json()
                usage = answer["usage"]
                assert usage.get("completion_tokens", usage.get("output_tokens")) == n, answer


def test_an_empty_list_of_tool_calls_is_left_out(server: Server) -> None:
    """Some clients send an empty list, but templates only check whether the field exists."""
    said = {"role": "assistant", "content": "Hm.", "tool_calls": []}
    fields = Fields({"messages": [said]})
    messages = read_messages(fields, RequestMedia(server.session, fields))
    assert messages == [{"role": "assistant", "content": "Hm."}]


def test_whole_numbers_may_be_written_as_floats(server: Server) -> None:
    """Some clients have only floats, and write 3 as 3.0."""
    assert chat(server, max_tokens=3.0, temperature=0).usage.completion_tokens == 3
    for field, value in (("max_tokens", 3.5), ("temperature", 10**400)):
        answer = server.post("/v1/chat/completions", {"messages": MESSAGES, field: value})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == field


def test_bad_chat_template_kwargs_are_named(server: Server) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(server, extra_body={"chat_template_kwargs": {"messages": []}})
    assert caught.value.param == "chat_template_kwargs"
