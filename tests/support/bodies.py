"""Request bodies for every endpoint, and random damage to them."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripted_model import write_scripted_model

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
    ("/api/chat", {"model": "m", "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [
            {"function": {"name": "f", "arguments": {"x": 1}}}]},
        {"role": "tool", "content": "r", "tool_name": "f"}],
     "tools": [{"type": "function", "function": FUNCTION}], "think": "low", "keep_alive": "5m",
     "options": {"num_predict": 3, "temperature": 0.5, "num_ctx": 64, "stop": ["x"], "seed": 1},
     "logprobs": True, "top_logprobs": 2, "stream": False}),
    ("/api/chat", {"messages": MESSAGES[1:2], "format": SCHEMA, "options": {"num_predict": 3}}),
    ("/api/generate", {"prompt": "a", "system": "s", "context": [1, 5], "format": "json",
     "options": {"num_predict": 3, "top_k": 5}}),
    ("/api/generate", {"prompt": "a", "raw": True, "stream": False, "keep_alive": 0,
     "options": {"num_predict": 3}}),
    ("/api/generate", {"prompt": "a", "suffix": "b", "options": {"num_predict": 3}}),
    ("/api/show", {"model": "m", "verbose": True}),
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
    ("/v1/verify", {"prompt": "ab", "options": {"max_tokens": 3, "temperature": 0.5,
     "logit_bias": [[5, 1.5], [6, None]]}, "name": "n", "reference": [1, 2], "generated": [3]}),
    ("/v1/verify/x", {"round": 1, "n": 1, "hash": "h", "draft": [1, 2], "branches": [[1, 5]]}),
    ("/apply-template", {"messages": MESSAGES, "tool_choice": "auto",
     "tools": [{"type": "function", "function": FUNCTION}], "chat_template_kwargs": {"a": 1}}),
]  # fmt: skip
"""A valid body for each path, with every field that the path reads."""

PATHS = ["/", "/health", "/metrics", "/v1/models", "/v1/models/m", "/props", "/slots",
         "/api/tags", "/api/ps", "/page/%00", "/v1/models/%ff%00", "/v1/%2e%2e/x", "//",
         "/nothing"]  # fmt: skip


class Raw:
    """JSON text that is sent unchanged."""

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
    """Return a body as bytes, with Raw parts unchanged."""
    raw: list[str] = []

    def keep(one: Any) -> str:
        raw.append(one.text)
        return f"@raw {len(raw) - 1}@"

    text = json.dumps(value, default=keep)
    for i, one in enumerate(raw):
        text = text.replace(f'"@raw {i}@"', one)
    return text.encode()


def damaged(value: Any, rng: random.Random) -> Any:
    """Return a copy with one part replaced, removed or added."""
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
    """Return the method, path, body and headers of a request."""
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


def write_model(folder: Path) -> Path:
    """Write a model with a chat template, infill tokens, and a token for every byte."""
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
    return path
