"""/v1/messages through the official client, with scripted models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import anthropic
import pytest
from prompts import TOO_COMPLEX
from serving import Server, serve, serve_scripted
from specllama.dialogue.answer_parts import Arguments, CallBegun
from specllama.server.anthropic.blocks import Blocks
from specllama.server.anthropic.input import read_conversation
from specllama.server.body.fields import Fields
from tool_models import SCRIPTS, TOOLS

NAMED: list[Any] = [
    {
        "name": tool["function"]["name"],
        "description": tool["function"].get("description", ""),
        "input_schema": tool["function"].get("parameters", {"type": "object"}),
    }
    for tool in TOOLS
]
SCHEMA = {"type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"]}
SHOWN = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}{% if m.tool_call_id %}={{ m.tool_call_id }}{% endif %}{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{{ reasoning_effort }}"
)
THINKING = ["<think>", "\nA number;", " say one.", "\n</think>", "\n\nIt is ", "one."]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """Servers with models that call two tools, think, or show their prompts."""
    hermes = SCRIPTS["hermes"]
    models: dict[str, Any] = {
        "calls": {"pieces": hermes.pieces, "chat_template": hermes.template},
        "thinks": {"pieces": THINKING, "chat_template": SHOWN + "{# <think> #}{{ bos_token }}"},
        "shows": {"pieces": ["a", "b", "c", "d"], "chat_template": SHOWN},
    }
    with serve_scripted(tmp_path_factory.mktemp("messages"), models) as found:
        yield found


@pytest.fixture
def clients(servers: dict[str, Server]) -> Iterator[dict[str, anthropic.Anthropic]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                closing(anthropic.Anthropic(base_url=one.url, api_key="none", max_retries=0))
            )
            for name, one in servers.items()
        }


Clients = dict[str, anthropic.Anthropic]


BODY: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 300,
    "messages": [{"role": "user", "content": "u"}],
}


def ask(**more: Any) -> dict[str, Any]:
    """Return arguments for the client, which has no parameter for the temperature."""
    extra = {"temperature": 0, **more.pop("extra_body", {})}
    return {**BODY, "extra_body": extra, **more}


def blocks(answer: Any) -> list[Any]:
    """Return the blocks of an answer without their random ids."""
    return [
        (one.name, one.input) if one.type == "tool_use" else (one.type, getattr(one, one.type))
        for one in answer.content
    ]


def test_a_text_answer_has_blocks_and_usage(clients: Clients) -> None:
    answer = clients["calls"].messages.create(**ask(max_tokens=3))
    (block,) = answer.content
    assert (answer.type, answer.role, answer.model) == ("message", "assistant", "test")
    assert (block.type, block.text) == ("text", "Let me add.")
    assert (answer.stop_reason, answer.stop_sequence) == ("max_tokens", None)
    assert answer.usage.output_tokens == 3
    again = clients["calls"].messages.create(**ask(max_tokens=3))
    known = again.usage.cache_read_input_tokens
    assert known
    assert again.usage.input_tokens + known == (
        answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
    )


def test_stop_reason_is_the_reason_why_an_answer_ended(clients: Clients) -> None:
    whole = clients["thinks"].messages.create(**ask())
    assert (whole.stop_reason, whole.stop_sequence) == ("end_turn", None)
    stopped = clients["calls"].messages.create(**ask(stop_sequences=["add", "me a"]))
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "me a")
    assert stopped.content[0].text == "Let "
    called = clients["calls"].messages.create(**ask(tools=NAMED))
    assert called.stop_reason == "tool_use"


def test_tool_calls_become_tool_use_blocks(clients: Clients) -> None:
    """Tools that the API's owner runs are ignored."""
    client = clients["calls"]
    tools = [{"type": "web_search_20250305", "name": "web_search"}, *NAMED]
    answer = client.messages.create(**ask(tools=tools))
    text, add, now = answer.content
    assert text.text == "Let me add."
    assert (add.type, add.name, add.input) == ("tool_use", "add", {"a": 1, "b": 2})
    assert (now.name, now.input) == ("now", {})
    assert add.id != now.id
    results = [
        {"type": "tool_result", "tool_use_id": one.id, "content": [{"type": "text", "text": "3"}]}
        for one in (add, now)
    ]
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [one.to_dict() for one in answer.content]},
        {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]},
    ]
    again = client.messages.create(**ask(tools=tools, messages=messages))
    assert again.content[1].name == "add"
    named = client.messages.create(**ask(tools=tools, tool_choice={"type": "tool", "name": "now"}))
    assert [one.name for one in named.content] == ["now"]
    must = client.messages.create(
        **ask(tools=tools, tool_choice={"type": "any", "disable_parallel_tool_use": True})
    )
    assert [one.name for one in must.content] == ["add"]
    none = client.messages.create(**ask(tools=tools, tool_choice={"type": "none"}))
    assert [one.type for one in none.content] == ["text"]


def test_a_cut_tool_call_has_an_empty_input(clients: Clients) -> None:
    """The stop reason reports the cut."""
    answer = clients["calls"].messages.create(**ask(tools=NAMED, max_tokens=10))
    assert answer.stop_reason == "max_tokens"
    assert (answer.content[-1].name, answer.content[-1].input) == ("add", {})


def test_streamed_events_rebuild_the_whole_answer(clients: Clients) -> None:
    whole = clients["calls"].messages.create(**ask(tools=NAMED))
    events = list(clients["calls"].messages.create(**ask(tools=NAMED, stream=True)))
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("message_start", "message_delta", "message_stop")
    assert events[0].message.usage.input_tokens > 0
    assert events[-2].usage.output_tokens == whole.usage.output_tokens
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3
    assert kinds.count("content_block_delta") > 5
    with clients["calls"].messages.stream(**ask(tools=NAMED)) as stream:
        final = stream.get_final_message()
    assert blocks(final) == blocks(whole)
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_thoughts_become_thinking_blocks(clients: Clients) -> None:
    whole = clients["thinks"].messages.create(**ask())
    thought, said = whole.content
    assert (thought.type, thought.thinking) == ("thinking", "A number; say one.")
    assert said.text == "It is one."
    assert whole.usage.output_tokens_details.thinking_tokens == 4
    with clients["thinks"].messages.stream(**ask()) as stream:
        assert blocks(stream.get_final_message()) == blocks(whole)


def test_output_format_constrains_the_answer(clients: Clients) -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    for extra in ({"output_config": {"format": form}}, {"output_format": form}):
        answer = clients["calls"].messages.create(**ask(extra_body=extra))
        assert list(json.loads(answer.content[0].text)) == ["b"]


def test_request_fields_reach_the_template(servers: dict[str, Server]) -> None:
    session = servers["shows"].session
    begin = session.detokenize(session.tokenize(""), special=True)  # BOS

    def read(**body: Any) -> str:
        body = {"messages": [{"role": "user", "content": "u"}]} | body
        encoded = json.dumps(body).encode()
        text = read_conversation(session, Fields.parse(encoded)).text
        counted = servers["shows"].post("/v1/messages/count_tokens", encoded)
        n_tokens = len(session.tokenize(text, add_special=False))
        assert counted.json() == {"input_tokens": n_tokens}
        assert text.startswith(begin)
        return text.removeprefix(begin)

    assert read() == "[user] u"
    assert read(system="s") == "[system] s[user] u"
    # Claude Code's first line differs every time, and the model does not need it.
    parts = ["x-anthropic-billing-header: cc_version=2.1; cch=fa690;", "You are.", "Be."]
    system = [
        {"type": "text", "text": one, "cache_control": {"type": "ephemeral"}} for one in parts
    ]
    assert read(system=system) == "[system] You are.\nBe.[user] u"
    assert read(thinking={"type": "enabled", "budget_tokens": 1024}) == "[user] uTrue"
    assert read(thinking={"type": "adaptive"}) == "[user] uTrue"
    assert read(thinking={"type": "disabled"}) == "[user] uFalse"
    assert read(chat_template_kwargs={"enable_thinking": 5}) == "[user] u5"
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "A"},
        {"type": "tool_use", "id": "i", "name": "add", "input": {"a": None}},
        {"type": "server_tool_use", "id": "k", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "k", "content": []},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "i", "content": "one"},
        {
            "type": "tool_result",
            "tool_use_id": "k",
            "content": [{"type": "text", "text": "two"}, {"type": "image", "source": {}}],
        },
        {"type": "tool_result", "tool_use_id": "j", "is_error": True},
        {"type": "text", "text": "B"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "C"}},
    ]
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": results},
    ]
    assert read(messages=messages) == (
        "[user] u[assistant] A(hm)"
        '<tool_call>\n{"name": "add", "arguments": {"a": null}}\n</tool_call>'
        "[tool] one=i[tool] two\n[image: not supported]=k[tool] =j[user] B\nC"
    )
    begun: list[Any] = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "So"}]
    assert read(messages=begun) == "[user] uSo"
    for nothing in ("", [{"type": "text", "text": ""}], []):
        begun[-1]["content"] = nothing
        assert read(messages=begun) == "[user] u"
    half = {"type": "tool_use", "id": "i", "name": "add", "input": {"a": "\ud83d", "b": None}}
    begun[-1]["content"] = [half]
    assert re.search(
        r'{"a": "(\\ufffd|\N{REPLACEMENT CHARACTER})", "b": null}', read(messages=begun)
    )


def test_reasoning_effort_reaches_the_template(servers: dict[str, Server]) -> None:
    """The field is from OpenAI's APIs."""
    body = {"messages": [{"role": "user", "content": "u"}]}
    for effort, shown in (("none", "False"), ("low", "low"), (None, "")):
        asked = servers["shows"].post("/apply-template", {**body, "reasoning_effort": effort})
        assert asked.json()["prompt"].endswith(f"[user] u{shown}")
    both = {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "high"}}
    assert (
        servers["shows"]
        .post("/apply-template", body | both)
        .json()["prompt"]
        .endswith("[user] uhigh")
    )
    wrong = servers["shows"].post("/apply-template", body | {"reasoning_effort": 5})
    assert wrong.json()["error"]["param"] == "reasoning_effort"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"messages": [], "system": "s"}, "messages is empty"),
        ({"messages": None}, "messages is missing"),
        ({"messages": [{"role": "critic", "content": "x"}]}, "messages[0].role must be"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]},
         "messages[0].content[0].source is an image, but the model does not accept images"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]},
         "messages[0].content[0].type must be"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]},
         "messages[0].content[0].type must be"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
         "messages[0].content[0].tool_use_id is missing"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0] must be"),
        ({"system": 5}, "system must be a string"),
        ({"stop_sequences": [5]}, "stop_sequences must be"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name is missing"),
        ({"tools": [{"type": 5, "name": "bash"}]}, 'tools[0].type must be a string, not 5'),
        ({"tools": [NAMED[0], NAMED[0]]}, "tools[1].name 'add' is the name of another tool"),
        ({"tools": NAMED, "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name must"),
        ({"tools": NAMED, "tool_choice": {"type": "some"}}, "tool_choice.type must be"),
        ({"tool_choice": {"type": "any"}}, "tool_choice.type must be"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers is not supported"),
        ({"max_tokens": -2}, "max_tokens must be"),
        ({"thinking": {}}, "thinking.type is missing"),
        ({"messages": [{"role": "user", "content": "u" * 3000}]}, "The prompt is too long: "),
    ],
)  # fmt: skip
def test_bad_message_requests_are_refused(
    servers: dict[str, Server], options: dict[str, Any], words: str
) -> None:
    answer = servers["calls"].post("/v1/messages", BODY | options)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert answer.json() == form("invalid_request_error", message)
    assert words in message


def form(kind: str, message: str) -> dict[str, Any]:
    """Return an error in Anthropic's format."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def test_errors_on_message_paths_have_anthropics_format(servers: dict[str, Server]) -> None:
    """Only the path decides the format, for every refusal."""
    session = servers["calls"].session
    with serve(session, api_keys=("secret",), max_body=1000) as server:
        for path in ("/v1/messages", "/messages", "/v1/messages/count_tokens"):
            key = {"x-api-key": "secret"}
            for answer, status, kind in (
                (server.post(path, BODY), 401, "authentication_error"),
                (server.post(path, BODY, headers=key | {"Origin": "http://a"}), 403,
                 "permission_error"),
                (server.post(path, b" " * 2000, headers=key), 413, "request_too_large"),
                (server.post(path + "/no", BODY, headers=key), 404, "not_found_error"),
                (server.get(path, headers=key), 405, "invalid_request_error"),
                (server.post(path, {}, headers=key), 400, "invalid_request_error"),
            ):  # fmt: skip
                assert answer.status_code == status
                assert answer.json() == form(kind, answer.json()["error"]["message"])
        for path in ("/v1/messagesx", "/v1/models"):
            error = server.get(path).json()["error"]
            assert set(error) == {"message", "type", "param", "code"}


def test_an_error_in_a_begun_stream_is_sent_as_an_event(clients: Clients) -> None:
    """The client raises it, although the status was 200."""
    options = ask(stream=True, extra_body={"grammar": TOO_COMPLEX})
    with pytest.raises(anthropic.APIStatusError, match="grammar") as caught:
        list(clients["calls"].messages.create(**options))
    assert caught.value.status_code == 200
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    with pytest.raises(anthropic.BadRequestError, match="grammar"):
        clients["calls"].messages.create(**options | {"stream": False})


def test_each_call_has_its_own_input() -> None:
    parts = [
        part
        for name, arguments in (("add", '{"a": 1}'), ("add", '{"a": 2}'), ("now", "{}"))
        for part in (CallBegun(0, "id", name), Arguments(0, arguments))
    ]
    called = Blocks.whole(parts).content
    assert [(one["name"], one["input"]) for one in called] == [
        ("add", {"a": 1}), ("add", {"a": 2}), ("now", {}),
    ]  # fmt: skip
