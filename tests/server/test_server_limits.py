"""Requests that the server refuses."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server, refused, serve
from specllama import SpecSession

PROMPT = PROMPTS["module"]
DRAWN: dict[str, Any] = {"temperature": 0.8, "seed": 1, **ENDLESS}
LONG: dict[str, Any] = {"prompt": PROMPT, "max_tokens": 1900, **DRAWN}

SESSION = {"max_queue": 2}
SETTINGS = {"max_body": 100_000}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", 5),
        ("prompt", []),
        ("prompt", [1.5]),
        ("prompt", ["a", 5]),
        ("prompt", {"a": 1}),
        ("model", 5),
        ("max_tokens", "many"),
        ("max_tokens", -2),
        ("max_tokens", 1.5),
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", -1),
        ("top_p", [1]),
        ("top_p", -1),
        ("top_k", 0.5),
        ("min_p", "x"),
        ("n", 0),
        ("n", 1000),
        ("best_of", 3),
        ("best_of", 0),
        ("seed", "x"),
        ("seed", 2**64),
        ("stop", 5),
        ("stop", ["a", 5]),
        ("stop", ["a"] * 65),
        ("logprobs", 21),
        ("logit_bias", [1]),
        ("logit_bias", {"a": 1}),
        ("logit_bias", [["a", 1]]),
        ("json_schema", 5),
        ("guided_regex", 5),
        ("guided_json", 5),
        ("stream", "yes"),
        ("echo", 1),
        ("suffix", "x"),
        ("response_format", "json"),
        ("response_format", {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}),
        ("grammar", 5),
        ("grammar", "root ::= ("),
        ("presence_penalty", "x"),
    ],
)
def test_bad_fields_are_named(server: Server, field: str, value: object) -> None:
    body = {"prompt": "x", "max_tokens": 1} | {field: value}
    error = refused(server.post("/v1/completions", json.dumps(body).encode()), 400)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == field


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"logit_bias": {"5": "x"}}, "logit_bias.5"),
    ],
)
def test_bad_inner_fields_are_named(server: Server, extra: dict[str, Any], param: str) -> None:
    answer = server.post("/v1/completions", {"prompt": "x", **extra})
    assert refused(answer, 400)["param"] == param


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{",
        b'{"prompt": NaN}',
        b"\xff",
        b"[" * 50_000,
        b'{"prompt": ' + b"[" * 40_000,
        b'{"prompt": "x", "seed": ' + b"9" * 5000 + b"}",
        b'{"prompt": "x", "user": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"prompt": "x", "echo": true, "logprobs": 1}',
        b'{"max_tokens": 1}',
        b'{"prompt": "x", "logit_bias": {"\\ud800": 1}}',
        b'{"prompt": "x", "logit_bias": {"999999": 1}}',
        b'{"prompt": [999999]}',
        b'{"prompt": ""}',
        b'{"prompt": "x", "temperature": 1e999}',
        b'{"prompt": "x", "response_format": {"type": "json_object", "schema": {"type": "no"}}}',
    ],
)
def test_bad_bodies_are_refused(server: Server, body: bytes) -> None:
    message = refused(server.post("/v1/completions", body), 400)["message"]
    assert not re.search(r"sys\.|object at|Traceback", message)


def test_unknown_paths_and_methods_are_refused(server: Server) -> None:
    refused(server.get("/v1/nothing"), 404)
    for answer, allowed in (
        (server.get("/v1/completions"), {"POST"}),
        (server.post("/health", {}), {"GET", "HEAD"}),
    ):
        refused(answer, 405)
        assert set(answer.headers["Allow"].split(", ")) == allowed
    error = refused(server.post("/v1/chat/completions", {"messages": []}), 400)
    assert "no chat template; use /v1/completions" in error["message"]


def test_too_large_bodies_and_prompts_are_refused(server: Server) -> None:
    body = {"prompt": "x" * 100_000}
    assert "more than 100000 bytes" in refused(server.post("/v1/completions", body), 413)["message"]

    def parts() -> Iterator[bytes]:  # without a length
        for _ in range(30):
            yield b" " * 10_000

    refused(httpx.post(f"{server.url}/v1/completions", content=parts(), timeout=60), 413)
    error = refused(server.post("/v1/completions", {"prompt": PROMPT * 20}), 400)
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "prompt"
    assert "> 2047 maximum" in error["message"]
    assert "larger --ctx-size" in error["message"]


def test_max_prompt_limits_prompts(session: SpecSession) -> None:
    with serve(session, max_prompt=3) as server:
        refused(server.post("/v1/completions", {"prompt": PROMPT}), 400)
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).is_success


def test_a_full_queue_gives_503(server: Server) -> None:
    stream = server.openai().completions.create(model="", stream=True, **LONG)
    handles = [server.session.submit("x", max_tokens=1) for _ in range(2)]
    answer = server.post("/v1/completions", {"prompt": "x"})
    assert refused(answer, 503)["code"] == "server_overloaded"
    assert answer.headers["retry-after"] == "1"
    stream.close()
    for handle in handles:
        handle.result(60)
    assert 'outcome="refused"} 1' in server.get("/metrics").text


def test_requests_without_the_api_key_are_refused(session: SpecSession) -> None:
    with serve(session, api_keys=("secret é",)) as server:
        for path in ("/v1/models", "/metrics"):
            error = refused(server.get(path), 401)
            assert error["code"] == "invalid_api_key"
        for wrong in ("secret", "secret éé", "x"):
            header = {"Authorization": f"Bearer {wrong}".encode()}
            refused(server.get("/v1/models", headers=header), 401)
        key = {"X-Api-Key": "secret é".encode()}
        for header in (
            {"Authorization": "Bearer secret é".encode()},
            {"Authorization": "bearer secret é".encode()},
            key,
            key | {"Authorization": b"Basic dTpw"},
        ):
            assert server.get("/v1/models", headers=header).is_success
        refused(server.get("/v1/models", headers={"Authorization": "Basic secret é".encode()}), 401)
        assert server.get("/health").is_success
        assert server.get("/").is_success
        with pytest.raises(openai.AuthenticationError):
            server.openai("wrong").models.list()
    with serve(session, api_keys=("secret", "other")) as server:
        for key in ("secret", "other"):
            assert server.openai(key).models.list().data[0].id == "test"
        with pytest.raises(openai.AuthenticationError):
            server.openai("secret,other").models.list()


def test_pages_of_other_origins_are_refused_unless_allowed(session: SpecSession) -> None:
    body = {"prompt": "x", "max_tokens": 1}
    other = {"Origin": "http://example.org"}
    with serve(session) as server:
        refused(server.post("/v1/completions", body, headers=other), 403)
        assert server.post("/v1/completions", body, headers={"Origin": server.url}).is_success
        # A foreign host name that points to this machine.
        refused(server.get("/v1/models", headers={"Host": "example.org"}), 403)
        assert server.get("/v1/models", headers={"Host": "localhost:1"}).is_success
    with serve(session, cors_origins=("http://example.org",)) as server:
        answer = server.post("/v1/completions", body, headers=other)
        assert answer.headers["access-control-allow-origin"] == "http://example.org"
        refused(server.get("/v1/models", headers={"Origin": "http://example.com"}), 403)


def test_one_request_may_have_more_choices_than_the_queue(server: Server) -> None:
    """A call is queued as a whole."""
    for body in ({"prompt": "x", "n": 6}, {"prompt": ["x", "y", "z"] * 2}):
        answer = server.post("/v1/completions", body | {"max_tokens": 1})
        assert len(answer.json()["choices"]) == 6


def test_choices_that_all_fail_are_refused_once(
    session: SpecSession, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"prompt": "x", "n": 6, "stream": True, "grammar": "root ::= ("}
    with serve(session) as server:
        refused(server.post("/v1/completions", body), 400)
    gc.collect()
    assert "never retrieved" not in caplog.text
