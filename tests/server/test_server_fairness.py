"""Clients are served while others send expensive requests or disconnect."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from bodies import write_model

SERVED = 5.0
"""Seconds within which another client's small request is answered, even on a busy machine.
Unbounded, each of the hostile requests below would take many times that."""

EXPENSIVE: dict[str, Any] = {
    "$defs": {"a": {"enum": [f"v{i}" for i in range(1500)]}},
    "type": "object",
    "properties": {f"p{i}": {"$ref": "#/$defs/a"} for i in range(1500)},
    "required": [f"p{i}" for i in range(1500)],
}
NESTED: dict[str, Any] = {"type": "string", "pattern": "^(((x?){8}){8}){8}$"}
OPTIONALS = "root ::= " + "(" * 40 + '"x"?' + ' "x"?)?' * 40


def form(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "schema": ("/v1/completions", {"prompt": "a", "response_format": form(EXPENSIVE)}),
    "tools": ("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "a"}],
        "tools": [{"type": "function", "function": {"name": f"f{i}", "parameters": EXPENSIVE}}
                  for i in range(20)],
    }),
    "prompts": ("/v1/completions", {"prompt": ["x"] * 150_000}),
    "parts": ("/completion", {"prompt": ["x", 1] * 90_000}),
    "messages": ("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "a"}] * 25_000}),
    "text": ("/tokenize", {"content": "a " * 450_000}),
    "lists": ("/v1/completions", {"prompt": "a", "user": [[]] * 200_000}),
    "digits": ("/v1/completions", {"prompt": "a", "response_format": form(
        {"type": "string", "pattern": "^(a{1," + "9" * 5000 + "})$"})}),
}  # fmt: skip
"""Requests that take long to read."""

FOLLOWED: dict[str, tuple[str, dict[str, Any]]] = {
    "nested pattern": ("/v1/completions", {
        "prompt": "a", "max_tokens": 20, "response_format": form(NESTED)}),
    "nested optionals": ("/v1/completions", {
        "prompt": "a", "max_tokens": 20, "grammar": OPTIONALS}),
}  # fmt: skip
"""Requests with grammars that take long to follow."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = write_model(tmp_path_factory.mktemp("pace"))
    command = [sys.executable, "-m", "specllama", "serve", "-m", str(model), "--port", "0"]
    server = subprocess.Popen(
        [*command, "-t", "1", "-ngl", "0", "-np", "4"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        found = server.stderr.readline().split()[-1]
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield found
    finally:
        server.kill()
        server.wait()
        if server.stderr is not None:
            server.stderr.close()


def serves_others(url: str, seconds: float = 3.0) -> None:
    """Send small requests for some seconds. Each must be answered soon."""
    end = time.monotonic() + seconds
    n = 0
    with httpx.Client(base_url=url, timeout=60) as client:
        while n < 3 or time.monotonic() < end:
            for path, body in (
                ("/v1/completions", {"prompt": "ab", "max_tokens": 5}),
                ("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": "a"}], "max_tokens": 5,
                    "response_format": form({"type": "object", "properties": {"a": {}}}),
                }),
                ("/tokenize", {"content": "ab"}),
            ):  # fmt: skip
                began = time.monotonic()
                answer = client.post(path, json=body)
                assert answer.status_code == 200, answer.text
                assert time.monotonic() - began < SERVED, path
                n += 1


@contextmanager
def asking(url: str, path: str, body: dict[str, Any], n_clients: int) -> Iterator[list[int]]:
    """Let clients send a request repeatedly. Yields the statuses of the answers."""
    statuses: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=120) as client:
            while not ended.is_set():
                statuses.append(client.post(path, content=content).status_code)

    content = json.dumps(body).encode()
    clients = [threading.Thread(target=ask) for _ in range(n_clients)]
    for one in clients:
        one.start()
    try:
        yield statuses
    finally:
        ended.set()
        for one in clients:
            one.join()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_do_not_delay_others(url: str, name: str) -> None:
    path, body = HOSTILE[name]
    with asking(url, path, body, n_clients=6) as statuses:
        serves_others(url)
    assert set(statuses) <= {200, 400, 413}


@pytest.mark.parametrize("name", FOLLOWED)
def test_hard_grammars_do_not_delay_others(url: str, name: str) -> None:
    path, body = FOLLOWED[name]
    with asking(url, path, body, n_clients=2) as statuses:
        serves_others(url)
    assert set(statuses) <= {200, 400}


def test_clients_that_disconnect_do_not_delay_others(url: str) -> None:
    path, body = HOSTILE["schema"]
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n"
    port = int(url.rsplit(":", 1)[1])
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head.encode() + content)
            time.sleep(0.02)
    serves_others(url, seconds=0)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/completions", {"prompt": ["x"] * 129}, "More than 128 choices; ask for fewer."),
        ("/v1/completions", {"prompt": ["x"] * 65, "n": 2}, "More than 128 choices"),
        ("/v1/completions", {"prompt": "x", "stop": ["x" * 5000]},
         "stop has 5000 bytes; at most 4096 are allowed."),
        ("/v1/completions", {"prompt": "x", "stop": ["x"] * 65},
         "stop has 65 strings; at most 64 are allowed."),
        ("/v1/completions", {"prompt": "x", "dry_sequence_breakers": ["x"] * 65},
         "dry_sequence_breakers has 65 strings; at most 64 are allowed."),
        ("/v1/completions", {"prompt": "x", "logit_bias": {str(i): 1 for i in range(70_000)}},
         "logit_bias has 70000 tokens; at most 65536 are allowed."),
        ("/v1/completions", {"prompt": "x", "logit_bias": {"9" * 5000: 1}}, "is not a token id"),
        ("/completion", {"prompt": ["x"] + [1] * 9000}, "prompt has 9001 parts, but the context"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}] * 4097},
         "messages has 4097 messages; at most 4096 are allowed."),
        ("/v1/responses", {"input": [{"role": "user", "content": "a"}] * 4097},
         "input has 4097 items; at most 4096 are allowed."),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}] * 4097},
         "messages has 4097 messages; at most 4096 are allowed."),
        ("/infill", {"input_prefix": "a", "input_suffix": "b",
                     "input_extra": [{"text": "a"}] * 4097},
         "input_extra has 4097 files; at most 4096 are allowed."),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "tools": [
            {"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]},
         "tools has 129 tools; at most 128 are allowed."),
        ("/v1/completions", {"prompt": "x", "json_schema": {"enum": ["x" * 999] * 300}},
         "json_schema has"),
        ("/v1/completions", {"prompt": "x", "json_schema": {"anyOf": [{"$ref": "#"}] * 2001}},
         "json_schema has 2001 references; at most 2000 are allowed."),
        ("/v1/completions", {"prompt": "x", "json_schema": json.loads(
            '{"items":' * 70 + "{}" + "}" * 70)},
         "json_schema has 65 levels of nesting; at most 64 are allowed."),
    ],
)  # fmt: skip
def test_requests_beyond_a_limit_are_refused_and_name_it(
    url: str, path: str, body: dict[str, Any], message: str
) -> None:
    answer = httpx.post(url + path, json=body, timeout=60)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
