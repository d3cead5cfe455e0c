"""Requests of every kind, damaged at random: each is answered or refused, none breaks anything."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import EXACT
from prompts import TOO_COMPLEX
from scripted_model import write_scripted_model
from specllama import SpecSession
from specllama.server.app import App
from specllama.server.settings import Settings

TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 9},
        "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        "kind": {"enum": ["a", 1, None]},
        "one": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Point"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
}
FUNCTION = {"name": "f", "description": "Does it.", "parameters": SCHEMA, "strict": True}
SAMPLING: dict[str, Any] = {
    "temperature": 0.5, "top_k": 5, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.1,
    "frequency_penalty": 0.1, "presence_penalty": 0.1, "repeat_last_n": 9, "seed": 3,
    "stop": ["x", "yz"], "logit_bias": {"5": 1.5}, "stream": False, "model": "m",
}  # fmt: skip
MESSAGES: list[Any] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
    ]},
    {"role": "tool", "tool_call_id": "1", "content": "r"},
]  # fmt: skip
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", SAMPLING | {"prompt": "ab", "max_tokens": 3, "n": 2, "logprobs": 2,
     "echo": True, "stream_options": {"include_usage": True}, "trace_html": True}),
    ("/v1/completions", {"prompt": ["a", "b"], "suffix": "c", "max_tokens": 2, "stream": True}),
    ("/v1/completions", {"prompt": [[1, 2], [3]], "max_tokens": 2, "grammar": "root ::= [ab]+",
     "stream": True, "logprobs": 1}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 2, "response_format": {
     "type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}),
    ("/v1/chat/completions", SAMPLING | {"messages": MESSAGES, "max_completion_tokens": 3,
     "tools": [{"type": "function", "function": FUNCTION}], "parallel_tool_calls": True,
     "tool_choice": {"type": "function", "function": {"name": "f"}}, "logprobs": True,
     "top_logprobs": 2, "chat_template_kwargs": {"a": 1},
     "prediction": {"type": "content", "content": "abc"}}),
    ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 3, "tool_choice": "auto",
     "tools": [{"type": "function", "function": FUNCTION}], "stream": True, "n": 2}),
    ("/v1/chat/completions", {"messages": MESSAGES[:2], "max_tokens": 3, "response_format": {
     "type": "json_object", "schema": SCHEMA}}),
    ("/v1/responses", SAMPLING | {"input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "r"},
        {"type": "reasoning", "summary": []}],
     "instructions": "i", "max_output_tokens": 3, "metadata": {"a": "b"}, "user": "u",
     "tools": [{"type": "function", **FUNCTION}], "tool_choice": "auto",
     "text": {"format": {"type": "text"}}, "parallel_tool_calls": False}),
    ("/v1/responses", {"input": "a", "max_output_tokens": 3, "stream": True, "text": {"format": {
     "type": "json_schema", "name": "x", "schema": SCHEMA}}}),
    ("/v1/messages", {"system": [{"type": "text", "text": "s"}], "max_tokens": 3, "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": ""},
            {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]},
            {"type": "text", "text": "b"}]}],
     "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}], "stream": True,
     "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
     "stop_sequences": ["x"], "thinking": {"type": "enabled", "budget_tokens": 9}}),
    ("/v1/messages", {"messages": MESSAGES[1:2], "max_tokens": 3, "temperature": 1,
     "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "a"}], "system": "s"}),
    ("/completion", SAMPLING | {"prompt": ["a", 5], "n_predict": 3, "n_probs": 2,
     "post_sampling_probs": True, "return_tokens": True, "dry_multiplier": 1.0,
     "dry_sequence_breakers": ["x"], "xtc_probability": 0.5}),
    ("/completion", {"prompt": "a", "n_predict": 0, "stream": True}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": "c", "n_predict": 3,
     "input_extra": [{"filename": "f", "text": "t"}], "stream": False, "top_k": 3}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b", "n_predict": 0, "stream": True}),
    ("/tokenize", {"content": "abc", "add_special": True, "parse_special": False,
     "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
    ("/apply-template", {"messages": MESSAGES, "tool_choice": "auto",
     "tools": [{"type": "function", "function": FUNCTION}], "chat_template_kwargs": {"a": 1}}),
]  # fmt: skip
"""A valid body for each path, with every field that means something to it."""

PATHS = ["/", "/health", "/metrics", "/v1/models", "/v1/models/m", "/props", "/slots",
         "/page/%00", "/v1/models/%ff%00", "/v1/%2e%2e/x", "//", "/nothing"]  # fmt: skip


class Raw:
    """JSON text as it is."""

    def __init__(self, text: str) -> None:
        self.text = text


def deep(n: int, value: Any = 1) -> Any:
    for _ in range(n):
        value = {"a": value} if n % 2 else [value]
    return value


WRONG: list[Any] = [
    None, True, False, 0, -1, 7, 1.5, -1.5, 2**31, -(2**31) - 1, 2**64, 10**400, 1e308, 1e-320,
    "", "x", "x y", "\0", "a\0b", "\ud800", "\udfff\ud800", "\N{PILE OF POO}", "\r\n\t\x7f",
    "x" * 3000, "auto", "none", "required", "null", "1", "{", "[", '"', "\\", "^(a{900000000})$",
    [], {}, [None], [[]], [[[]]], [{}], [1, "x"], {"": 1}, {"a": 1}, {"\ud800": 1}, {"\0": {}},
    {"type": "object"}, {"type": {}}, {"type": "x"}, {"$ref": "#"}, {"name": "f"},
    deep(30), deep(31), deep(200), deep(201), deep(800), deep(801),
    Raw("1e999"), Raw("-1e999"), Raw("NaN"), Raw("9" * 5000), Raw("-0"), Raw('"\\u0000"'),
]  # fmt: skip
NAMES = [
    *sorted({name for _, body in BODIES for name in body}),
    "functions", "function_call", "previous_response_id", "lenience", "acceptance", "role", "type",
    "minLength", "maxItems", "pattern", "$defs", "allOf", "const", "", "\0", "\ud800",
]  # fmt: skip


def written(value: Any) -> bytes:
    """Return a body, what is Raw in it as it is."""
    raw: list[str] = []

    def keep(one: Any) -> str:
        raw.append(one.text)
        return f"@raw {len(raw) - 1}@"

    text = json.dumps(value, default=keep)
    for i, one in enumerate(raw):
        text = text.replace(f'"@raw {i}@"', one)
    return text.encode()


def damaged(value: Any, rng: random.Random) -> Any:
    """Return a copy in which one part is another, is gone, or is new."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.1:
        return rng.choice(WRONG)
    kind = rng.random()
    if isinstance(value, list):
        i = rng.randrange(len(value))
        if kind < 0.1:
            return value * rng.choice([0, 2, 40])
        return [*value[:i], damaged(value[i], rng), *value[i + 1 :]]
    name = rng.choice(list(value))
    if kind < 0.1:
        return {key: one for key, one in value.items() if key != name}
    if kind < 0.25:
        return value | {rng.choice(NAMES): rng.choice(WRONG)}
    return value | {name: damaged(value[name], rng)}


def request(rng: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    """Method, path, body and headers of a request."""
    path, body = rng.choice(BODIES)
    value: Any = copy.deepcopy(body)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        value = damaged(value, rng)
    content = written(value)
    if rng.random() < 0.05:
        at = rng.randrange(len(content) + 1)
        content = content[:at] + rng.choice([b"", b"\0", b"\xff", b"}", b'"']) + content[at + 1 :]
    headers = {}
    if rng.random() < 0.03:
        values = ["[", "http://[", "a]b", "x" * 999, "localhost:99999999", "\xff", ""]
        headers = {rng.choice(["Host", "Origin", "Authorization"]): rng.choice(values)}
    if rng.random() < 0.03:
        path = rng.choice(PATHS)
        return rng.choice(["GET", "POST", "HEAD", "PUT"]), path, content, headers
    return "POST", path, content, headers


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecSession]:
    """A model with a chat template, tokens for gaps, and a token for every byte."""
    folder = tmp_path_factory.mktemp("damage")
    plain, path = folder / "plain.gguf", folder / "model.gguf"
    marks = ["<pre>", "<suf>", "<mid>", "<rep>", "<sep>"]
    write_scripted_model(
        plain, ["ab", "<tool_call>", '{"name": "f", "', "x"], others=marks, then=None,
        any_text=True, chat_template=TEMPLATE, n_ctx=2048,
    )  # fmt: skip
    options = [
        word for i, name in enumerate(("pre", "suf", "mid", "rep", "sep"))
        for word in ("--special-token-by-id", f"fim_{name}", str(7 + i))
    ]  # fmt: skip
    command = [sys.executable, "-m", "gguf.scripts.gguf_new_metadata", *options, plain, path]
    subprocess.run(command, check=True, capture_output=True)
    with SpecSession(path, n_seq=4, max_queue=4096, **EXACT) as opened:
        assert opened.has_infill
        yield opened


async def status(app: App, one: tuple[str, str, bytes, dict[str, str]]) -> tuple[int, str]:
    """Send a request; return the status of the answer and its text."""
    method, path, content, headers = one
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        answer = await client.request(method, path, content=content, headers=raw, timeout=60)
        return answer.status_code, answer.text


def check_all(session: SpecSession, n: int, seed: int) -> dict[int, int]:
    """Send so many; return how many answers had which status."""
    rng = random.Random(seed)
    app = App(session, Settings("m"))
    counts: dict[int, int] = {}

    async def send_all() -> None:
        for _ in range(0, n, 8):
            some = [request(rng) for _ in range(8)]
            answers = await asyncio.gather(
                *(asyncio.wait_for(status(app, one), 60) for one in some)
            )
            for one, (code, text) in zip(some, answers, strict=True):
                counts[code] = counts.get(code, 0) + 1
                assert code < 500, (one, text)
                assert "server_error" not in text, (one, text)
                if code >= 400 and one[0] != "HEAD":
                    names = set(json.loads(text)["error"])
                    forms = [{"message", "type", "param", "code"}]
                    if "messages" in one[1]:
                        forms.append({"message", "type"})
                    assert names in forms, (one, text)

    asyncio.run(send_all())
    return counts


def test_the_bodies_are_valid(session: SpecSession) -> None:
    app = App(session, Settings("m"))
    for path, body in BODIES:
        code, text = asyncio.run(status(app, ("POST", path, written(body), {})))
        assert code == 200 or "exclude each other" in text, (path, text)


def test_damaged_requests(session: SpecSession) -> None:
    counts = check_all(session, 600, seed=1)
    assert counts[400] > 250
    assert counts[200] > 80
    assert session.generate("a", max_tokens=2).stats.generated_tokens == 2


@pytest.mark.slow
def test_many_more(session: SpecSession) -> None:
    for seed in range(2, 7):
        check_all(session, 3000, seed)


PART = {"type": "message", "role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        # What is given back in the answer.
        ("/v1/responses", {"input": "a", "metadata": {"a": "\ud800"}}, 200),
        ("/v1/responses", {"input": "a", "metadata": {"a": Raw("1e999")}}, 400),
        ("/v1/responses", {"input": [PART], "text": {"x": "\udc00"}, "user": "\ud800"}, 200),
        ("/apply-template", {"messages": [{"role": "\ud800", "content": "a"}]}, 400),
        # What the message names.
        ("/v1/chat/completions", {"messages": [PART], "tools": [{"type": "function", "function":
         {"name": "f", "parameters": {"properties": {"\ud800": 5}}}}]}, 400),
        # Whose message it is, where tools are told in one.
        ("/v1/chat/completions", {"messages": [{"content": "a"}],
         "tools": [{"type": "function", "function": FUNCTION}]}, 400),
        ("/infill", {"input_prefix": "a", "input_suffix": "b",
         "input_extra": [{"filename": "\ud800", "text": "x"}]}, 400),
        ("/infill", {"input_prefix": "a", "input_suffix": "b",
         "input_extra": [{"text": "\ud800"}]}, 400),
        # Which would be written out, gigabytes of it.
        ("/v1/completions", {"prompt": "a", "response_format": {"type": "json_object", "schema":
         {"type": "string", "minLength": 10**10}}}, 200),
        ("/v1/completions", {"prompt": "a", "response_format": {"type": "json_object", "schema":
         {"type": "string", "pattern": "^a{9999999999}$"}}}, 200),
    ],
)  # fmt: skip
def test_what_broke_it(session: SpecSession, path: str, body: Any, code: int) -> None:
    body = {"max_tokens": 2, "max_output_tokens": 2, "n_predict": 2} | body
    one = ("POST", path, written(body), {})
    found, text = asyncio.run(status(App(session, Settings("m")), one))
    assert found == code, text


def test_a_grammar_that_cannot_be_followed(session: SpecSession) -> None:
    """It is the client's; that shows while it is followed."""
    body = {"prompt": "x", "max_tokens": 99, "grammar": TOO_COMPLEX}
    one = ("POST", "/v1/completions", written(body), {})
    code, text = asyncio.run(status(App(session, Settings("m")), one))
    assert code == 400
    assert json.loads(text)["error"]["param"] == "grammar"


@pytest.mark.parametrize(("header", "value"), [("Host", "["), ("Origin", "http://[")])
def test_headers_that_are_no_address(session: SpecSession, header: str, value: str) -> None:
    one = ("GET", "/health", b"", {header: value})
    assert asyncio.run(status(App(session, Settings("m")), one))[0] == 400


def test_a_prompt_that_is_only_read_gives_no_text(session: SpecSession) -> None:
    body = {"input_prefix": "a", "input_suffix": "b", "n_predict": 0, "stream": True}
    one = ("POST", "/infill", written(body), {})
    code, text = asyncio.run(status(App(session, Settings("m")), one))
    assert code == 200
    assert all(json.loads(line[6:])["content"] == "" for line in text.split("\n\n") if line)
