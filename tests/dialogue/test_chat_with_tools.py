"""`chat` with tools, in Python."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_model import write_scripted_model
from specllama import ArgumentError, ModelError, SpecSession, ToolCall
from tool_models import ADD, CALLED, NOW, SCRIPTS, TOOLS

ASKED = [{"role": "user", "content": "x"}]


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SpecSession]:
    script = SCRIPTS[getattr(request, "param", "hermes")]
    path = tmp_path / "model.gguf"
    write_scripted_model(
        path, script.pieces, control=script.control, chat_template=script.template, any_text=True,
        n_ctx=2048,
    )  # fmt: skip
    with SpecSession(path, n_threads=1, n_gpu_layers=0) as opened:
        yield opened


@pytest.mark.parametrize("session", list(SCRIPTS), indirect=True)
def test_tool_calls_of_every_format_are_parsed(
    session: SpecSession, request: pytest.FixtureRequest
) -> None:
    script = SCRIPTS[request.node.callspec.params["session"]]
    answer = session.chat(ASKED, tools=TOOLS)
    assert [(one.name, one.arguments) for one in answer.tool_calls] == CALLED[: script.calls]
    assert answer.message is not None
    assert answer.message["content"] == ("Let me add." if "Let" in script.pieces[0] else "")
    results = [
        {"role": "tool", "tool_call_id": one.id, "content": "3"} for one in answer.tool_calls
    ]
    again = session.chat([*ASKED, answer.message, *results], tools=TOOLS, max_tokens=4)
    assert again.stats.prompt_tokens > answer.stats.prompt_tokens


def test_tool_choices_are_enforced(session: SpecSession) -> None:
    now = session.chat(ASKED, tools=TOOLS, tool_choice="now")
    assert [(one.name, one.arguments) for one in now.tool_calls] == [("now", {})]
    by_form = session.chat(ASKED, tools=TOOLS, tool_choice=NOW)
    assert by_form.tokens == now.tokens
    none = session.chat(ASKED, tools=TOOLS, tool_choice="none")
    assert none.tool_calls == []
    must = session.chat(ASKED, tools=TOOLS, tool_choice="required", max_tokens=300, n=2)
    assert [one.tool_calls[0].name for one in must.choices] == ["add", "add"]


def test_asyncio_gives_the_same_tool_calls(session: SpecSession) -> None:
    whole = session.chat(ASKED, tools=TOOLS)
    found = asyncio.run(session.achat(ASKED, tools=TOOLS))
    assert found.tokens == whole.tokens
    assert [one.arguments for one in found.tool_calls] == [
        one.arguments for one in whole.tool_calls
    ]
    assert asyncio.run(session.achat(ASKED, max_tokens=2)).message is None


def test_streams_and_handles_give_the_same_tool_calls(session: SpecSession) -> None:
    whole = session.chat(ASKED, tools=TOOLS)
    with session.stream_chat(ASKED, tools=TOOLS) as stream:
        text = "".join(chunk.text for chunk in stream)
    handle = session.submit_chat(ASKED, tools=TOOLS, n=2, seed=7)
    for found in (stream.result(), *(one.result() for one in handle.choices)):
        assert found.tokens == whole.tokens
        assert text == found.text
        assert [(one.name, one.arguments) for one in found.tool_calls] == [
            (one.name, one.arguments) for one in whole.tool_calls
        ]
        assert found.message is not None
        assert found.message["content"] == "Let me add."
    with session.stream_chat(ASKED, tools=TOOLS, tool_choice="now") as stream:
        pass  # closed before the first chunk
    assert stream.result().message == {"role": "assistant", "content": ""}
    assert session.stream_chat(ASKED, max_tokens=2).run().message is None
    assert session.submit_chat(ASKED, max_tokens=2).result().message is None
    with pytest.raises(ArgumentError, match=r"tools\[1\] has the name of another tool"):
        session.stream_chat(ASKED, tools=[ADD, ADD])


def test_truncated_arguments_of_a_tool_call_stay_text(session: SpecSession) -> None:
    cut = session.chat(ASKED, tools=TOOLS, max_tokens=11)
    (call,) = cut.tool_calls
    assert isinstance(call.arguments, str)
    assert call == ToolCall(call.id, "add", call.arguments)


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [
        ("add", "auto", "tools must be a list of tools like"),
        ([{"name": "add"}], "auto", "tools[0] must be like"),
        ([ADD, ADD], "auto", "tools[1] has the name of another tool, 'add'"),
        ([{"function": {"name": "a b"}}], "auto", "tools[0] must have a name of"),
        ([{"function": {"name": "a", "parameters": 5}}], "auto", "must be a JSON schema"),
        ([{"function": {"name": "a", "strict": True, "parameters": {"type": "object",
          "properties": {"b": {"type": 5}}}}}], "auto", "tools[0] parameters"),
        ([], "required", "tool_choice must be"),
        ([ADD], "sub", "tool_choice must be"),
        ([ADD], {"function": {"name": "sub"}}, "tool_choice must be"),
    ],
)  # fmt: skip
def test_bad_tools_are_refused_with_one_sentence(
    session: SpecSession, tools: Any, choice: Any, message: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        session.chat(ASKED, tools=tools, tool_choice=choice)
    assert message in str(error.value)


def test_a_model_without_a_chat_template_refuses_tools(bundled_model: Path) -> None:
    with (
        SpecSession(bundled_model, n_threads=1, n_gpu_layers=0) as plain,
        pytest.raises(ModelError, match="no chat template; continue a text"),
    ):
        plain.chat(ASKED, tools=TOOLS)
