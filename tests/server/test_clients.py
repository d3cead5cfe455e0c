"""Real clients with the real server, and a small model that chats.

The answers of such a small model do not matter. The tests check that the server accepts each
client's requests, and that the client can read the answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import openai
import pydantic
import pytest
from real_models import real_model
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession

QUESTION = "What is the weather in Paris?"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Returns the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Paris", "Rome"]},
                "days": {"type": "integer"},
            },
            "required": ["city"],
        },
    },
}


class Weather(pydantic.BaseModel):
    """The weather of a city."""

    city: Literal["Paris", "Rome"]
    sunny: bool


@pytest.fixture(scope="module")
def server(smollm2: Path) -> Iterator[Server]:
    options = {**EXACT, **FIXED, "kv_type": "f16", "n_ctx": 2048}
    with SpecSession(smollm2, **options) as session, serve(session) as running:
        yield running


@pytest.fixture
def loop() -> Iterator[None]:
    """An event loop for clients that use the thread's loop. Without one they leave their own loop
    open."""
    with closing(asyncio.new_event_loop()) as made:
        asyncio.set_event_loop(made)
        yield
        asyncio.set_event_loop(None)


def ask(**more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "user", "content": QUESTION}],
    } | more


def test_openai_client_calls_a_tool_and_sends_its_result(server: Server) -> None:
    client = server.openai()
    options = ask(tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=60)
    message = client.chat.completions.create(**options).choices[0].message
    (call,) = message.tool_calls or []
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    messages = [*options["messages"], message, result]
    answer = client.chat.completions.create(**ask(messages=messages, tools=[TOOL], max_tokens=20))
    assert answer.choices[0].message.content or answer.choices[0].message.tool_calls
    # The conversation so far was not computed again.
    assert answer.usage.prompt_tokens_details.cached_tokens > 100


def test_openai_stream_helper_parses_tool_calls(server: Server) -> None:
    options = ask(tools=[openai.pydantic_function_tool(Weather)], tool_choice="required")
    with server.openai().chat.completions.stream(**options, parallel_tool_calls=False) as stream:
        completion = stream.get_final_completion()
    (call,) = completion.choices[0].message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, Weather)


def test_openai_client_parses_structured_outputs(server: Server) -> None:
    client = server.openai()
    options = ask(max_tokens=60)
    parsed = client.chat.completions.parse(response_format=Weather, **options)
    assert isinstance(parsed.choices[0].message.parsed, Weather)
    response = client.responses.parse(
        model="m", input=QUESTION, text_format=Weather, temperature=0, max_output_tokens=60
    )
    assert isinstance(response.output_parsed, Weather)


def test_a_request_like_aiders_is_streamed(server: Server) -> None:
    """A system message, examples as turns, the file and a reminder; streamed."""
    turns = ["Change the greeting.", "Ok.", "# file.py\n```\nprint('hi')\n```", "Ok.", "Go on."]
    messages = [{"role": "system", "content": "Act as an expert software developer."}] + [
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)
    ]
    options = ask(messages=messages, stream=True, max_tokens=20, extra_headers={"X-Title": "Aider"})
    events = list(server.openai().chat.completions.create(**options))
    assert "".join(event.choices[0].delta.content or "" for event in events)


def test_llm_command_uses_the_server(server: Server, tmp_path: Path) -> None:
    """Simon Willison's `llm`, with the server as one of its models, and with a tool."""
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: here\n  model_name: m\n  api_base: {server.url}/v1\n"
        "  supports_tools: true\n  supports_schema: true\n"
    )
    environment = {**os.environ, "LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": "none"}

    def llm(*arguments: str) -> str:
        sampling = ("-o", "temperature", "0")
        command = [sys.executable, "-m", "llm", "-m", "here", "--no-log", *sampling, *arguments]
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    assert llm("-o", "max_tokens", "10", QUESTION).strip()
    llm("-o", "max_tokens", "30", "-T", "llm_version", QUESTION)  # any answer
    # A schema without free text: a small model may write a string until max_tokens cuts it.
    schema = json.dumps(Weather.model_json_schema())
    said = llm("--schema", schema, "-o", "max_tokens", "60", "--no-stream", QUESTION)
    assert Weather.model_validate_json(said)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_langchain_uses_the_server(server: Server) -> None:
    ChatOpenAI = pytest.importorskip("langchain_openai").ChatOpenAI  # noqa: N806
    model = ChatOpenAI(
        model="m", base_url=f"{server.url}/v1", api_key="none", temperature=0, max_tokens=80
    )
    bound = model.bind_tools([TOOL], tool_choice="any", parallel_tool_calls=False)
    (call,) = bound.invoke(QUESTION).tool_calls
    assert call["name"] == "get_weather"
    assert call["args"]["city"] in ("Paris", "Rome")
    chunks = list(bound.stream(QUESTION))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    assert whole.tool_calls[0]["args"] == call["args"]
    for method in ("json_schema", "function_calling"):
        structured = model.with_structured_output(Weather, method=method)
        assert isinstance(structured.invoke(QUESTION), Weather)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("loop")
def test_pydantic_ai_uses_the_server(server: Server) -> None:
    ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
    model = OpenAIChatModel("m", provider=provider)
    settings = {"temperature": 0.0, "max_tokens": 100}
    agent = ai.Agent(model, output_type=Weather, model_settings=settings)
    assert isinstance(agent.run_sync(QUESTION).output, Weather)
    native = ai.Agent(model, output_type=ai.NativeOutput(Weather), model_settings=settings)
    assert isinstance(native.run_sync(QUESTION).output, Weather)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("loop")
def test_litellm_uses_the_server(server: Server) -> None:
    litellm = pytest.importorskip("litellm")
    options = ask(model="openai/m", api_base=f"{server.url}/v1", api_key="none", max_tokens=60)
    answer = litellm.completion(**options, tools=[TOOL], tool_choice="required")
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
    parts = litellm.completion(**options, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in parts)


@pytest.fixture(scope="module")
def coder() -> Iterator[Server]:
    """A server with a model that was trained to call tools and to infill."""
    options = {**FIXED, "n_ctx": 4096, "n_gpu_layers": 0}
    with SpecSession(real_model("qwen-1.5b"), **options) as session, serve(session) as running:
        yield running


@pytest.mark.slow
def test_a_model_trained_for_tools_calls_one(coder: Server) -> None:
    client = coder.openai()
    options = ask(tools=[TOOL])
    first = client.chat.completions.create(**options)
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    assert json.loads(call.function.arguments)["city"] == "Paris"
    result = {"role": "tool", "tool_call_id": call.id, "content": "18 degrees and rain"}
    messages = [*options["messages"], choice.message, result]
    answer = client.chat.completions.create(**ask(messages=messages, tools=[TOOL]))
    # The prompt before the answer is still cached. The answer is, too, if the template writes the
    # call as the model did (sometimes in a code fence).
    known = answer.usage.prompt_tokens_details.cached_tokens
    assert known >= first.usage.prompt_tokens - 1


@pytest.mark.slow
def test_a_model_trained_for_infill_fills_in(coder: Server) -> None:
    prefix, suffix = "def add(a, b):\n    return ", "\n\nassert add(1, 2) == 3\n"
    answer = coder.openai().completions.create(
        model="m", prompt=prefix, suffix=suffix, max_tokens=16, temperature=0
    )
    assert answer.choices[0].text.strip() == "a + b"
    assert answer.choices[0].finish_reason == "stop"
