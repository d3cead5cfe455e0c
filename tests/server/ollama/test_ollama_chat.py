"""/api/chat through the official client, with scripted models."""

from __future__ import annotations

import json
from typing import Any

import httpx
import ollama
import pytest
from serving import Server
from specllama.server.body.fields import Fields
from specllama.server.ollama.fields import translated
from specllama.server.ollama.input import read_conversation
from tool_models import MESSAGES, TOOLS

Clients = dict[str, ollama.Client]
Servers = dict[str, Server]


def ask(**more: Any) -> dict[str, Any]:
    options = {"temperature": 0, **more.pop("options", {})}
    return {"model": "test", "messages": MESSAGES, "options": options} | more


def test_a_chat_answer_has_content_reason_and_figures(clients: Clients) -> None:
    answer = clients["calls"].chat(**ask(options={"num_predict": 3}))
    assert (answer.model, answer.message.role, answer.message.content) == (
        "test", "assistant", "Let me add.",
    )  # fmt: skip
    assert (answer.done, answer.done_reason, answer.eval_count) == (True, "length", 3)
    assert answer.prompt_eval_count
    parts = (answer.load_duration, answer.prompt_eval_duration, answer.eval_duration)
    assert 0 < sum(one or 0 for one in parts) <= (answer.total_duration or 0) + 1000
    stopped = clients["calls"].chat(**ask(options={"stop": ["me a"]}))
    assert (stopped.message.content, stopped.done_reason) == ("Let ", "stop")


def test_a_streamed_chat_answer_equals_the_whole_one(clients: Clients, servers: Servers) -> None:
    whole = clients["thinks"].chat(**ask())
    parts = list(clients["thinks"].chat(**ask(stream=True)))
    assert [one.done for one in parts] == [False] * (len(parts) - 1) + [True]
    assert len(parts) > 3
    assert "".join(one.message.content or "" for one in parts) == whole.message.content
    assert "".join(one.message.thinking or "" for one in parts) == whole.message.thinking
    assert parts[-1].eval_count == whole.eval_count
    # Answers are streamed by default, one object per line.
    answer = servers["thinks"].post("/api/chat", {"messages": MESSAGES})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert all(json.loads(line)["model"] == "test" for line in answer.text.splitlines())


def test_thoughts_are_separate_from_the_content(clients: Clients) -> None:
    answer = clients["thinks"].chat(**ask(think=True))
    assert answer.message.thinking == "A number; say one."
    assert answer.message.content == "It is one."


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_have_objects_as_arguments(clients: Clients, stream: bool) -> None:
    given = clients["calls"].chat(**ask(tools=TOOLS, stream=stream))
    answers = list(given) if stream else [given]
    made = [call for one in answers for call in one.message.tool_calls or []]
    assert [(one.function.name, one.function.arguments) for one in made] == [
        ("add", {"a": 1, "b": 2}), ("now", {}),
    ]  # fmt: skip
    assert "".join(one.message.content or "" for one in answers).strip() == "Let me add."
    assert answers[-1].done_reason == "stop"


def test_a_cut_call_is_returned_as_text(clients: Clients) -> None:
    for stream in (False, True):
        given = clients["calls"].chat(
            **ask(tools=TOOLS, stream=stream, options={"num_predict": 12})
        )
        answers = list(given) if stream else [given]
        assert not any(one.message.tool_calls for one in answers)
        said = "".join(one.message.content or "" for one in answers)
        assert said.endswith('add {"a": 1, "b')
        assert answers[-1].done_reason == "length"


def test_a_format_constrains_the_answer_to_a_schema(clients: Clients) -> None:
    schema = {"type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"]}
    answer = clients["calls"].chat(**ask(format=schema))
    assert json.loads(answer.message.content or "")["b"] in (1, 2)
    answer = clients["calls"].chat(**ask(format="json", options={"num_predict": 1}))
    assert (answer.message.content or "").startswith("{")


def test_results_belong_to_the_calls_of_their_names(servers: Servers) -> None:
    def call(name: str) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": {"x": 1}}}

    messages = [
        *MESSAGES,
        {"role": "assistant", "thinking": "Hm.", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "content": "of b", "tool_name": "b"},
        {"role": "tool", "content": "of a"},
    ]  # fmt: skip
    given = translated(Fields({"messages": messages, "think": "high"}))
    conversation = read_conversation(servers["thinks"].session, given)
    assert conversation is not None
    assert conversation.text.endswith("[tool] of b=call00001 b[tool] of a=call00000 ahigh<s>")
    assert "(Hm.)" in conversation.text


def test_think_becomes_an_argument_of_the_template(servers: Servers) -> None:
    for think, shown in ((False, "False"), (True, "True"), ("low", "low"), (None, "")):
        given = translated(Fields({"messages": MESSAGES, "think": think}))
        conversation = read_conversation(servers["thinks"].session, given)
        assert conversation is not None
        assert conversation.text == f"<s>[user] u{shown}<s>"


def test_a_chat_without_messages_only_loads_the_model(clients: Clients) -> None:
    answer = clients["calls"].chat(model="test")
    assert (answer.done, answer.done_reason, answer.message.content) == (True, "load", "")
    (part,) = clients["calls"].chat(model="test", messages=[], stream=True)
    assert part.done_reason == "load"


def test_logprobs_are_sent_with_their_tokens(clients: Clients) -> None:
    options = ask(logprobs=True, top_logprobs=2, options={"num_predict": 3})
    whole = clients["calls"].chat(**options).logprobs or []
    assert [one.token for one in whole] == ["Let", " me", " add."]
    assert [len(one.top_logprobs or []) for one in whole] == [2, 2, 2]
    parts = [one.logprobs or [] for one in clients["calls"].chat(**options, stream=True)]
    assert [one for part in parts for one in part] == whole


def test_options_without_an_effect_are_named_in_the_log(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"num_ctx": 4096, "mirostat": 2, "mirostat_tau": 0.0, "top_k": 3, "num_predict": 1}
    body = {"messages": MESSAGES, "options": options, "keep_alive": "5m", "stream": False}
    with caplog.at_level("WARNING", "specllama.server"):
        assert servers["calls"].post("/api/chat", body).is_success
    assert "Ignored in requests: the options mirostat, num_ctx." in caplog.text


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"messages": [{"role": "user", "content": "u", "images": ["aGk="]}]},
        "does not accept images",
    ),
    ({"messages": [{"role": "critic", "content": "u"}]}, "messages[0].role must be"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "function is missing"),
    ({"messages": "u"}, "messages must be a list"),
    ({"options": {"temperature": "hot"}}, "temperature must be a number"),
    ({"options": {"num_predict": 1.5}}, "num_predict must be a whole number"),
    ({"options": {"stop": 1}}, "stop must be"),
    ({"options": []}, "options must be an object"),
    ({"format": "xml"}, "format must be"),
    ({"format": 3}, "format must be"),
    ({"think": "hard"}, "think must be"),
    ({"keep_alive": "soon"}, "keep_alive must be"),
    ({"keep_alive": True}, "keep_alive must be"),
    ({"tools": [{"type": "function", "function": {}}]}, "name is missing"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_a_bad_request_gets_a_sentence_in_ollamas_format(
    servers: Servers, wrong: dict[str, Any], said: str
) -> None:
    answer = servers["calls"].post("/api/chat", {"messages": MESSAGES} | wrong)
    assert answer.status_code == 400
    (error,) = answer.json().values()
    assert said in error
    assert error.endswith(".")


def test_a_chat_without_a_template_is_refused(clients: Clients) -> None:
    with pytest.raises(ollama.ResponseError, match="no chat template") as caught:
        clients["continues"].chat(**ask())
    assert caught.value.status_code == 400


def test_a_disconnected_client_does_not_block_the_next_request(servers: Servers) -> None:
    body = {"messages": MESSAGES, "options": {"num_predict": 1}}
    with httpx.stream("POST", servers["calls"].url + "/api/chat", json=body, timeout=60) as answer:
        assert next(answer.iter_lines())
    assert servers["calls"].post("/api/chat", body).is_success
