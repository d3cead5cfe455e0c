"""What the server refuses, and what becomes of requests whose clients leave."""

from __future__ import annotations

import gc
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession

PROMPT = PROMPTS["module"]
DRAWN: dict[str, Any] = {"temperature": 0.8, "seed": 1, **ENDLESS}
LONG: dict[str, Any] = {"prompt": PROMPT, "max_tokens": 1900, **DRAWN}


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(max_queue=2, **EXACT, **FIXED) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(session: SpecSession) -> Iterator[Server]:
    with serve(session, max_body=100_000) as running:
        yield running


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return dict(error)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", 5),
        ("prompt", []),
        ("prompt", [1.5]),
        ("prompt", ["a", 5]),
        ("prompt", {"a": 1}),
        ("prompt", "\ud800"),
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
        b'{"prompt": "\\ud800"}',
        b'{"prompt": "x", "stop": "\\ud800"}',
        b'{"prompt": "x", "grammar": "\\ud800"}',
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


def n_ended(server: Server, how: str) -> int:
    (n,) = re.findall(rf'outcome="{how}"}} (\d+)', server.get("/metrics").text)
    return int(n)


def test_refused_requests_are_not_counted_as_failed(server: Server) -> None:
    """Also where only the session finds it out."""
    n_failed = n_ended(server, "failed")
    for wrong in ({"grammar": "root ::= ("}, {"regex": "(?=a)"}):
        refused(server.post("/v1/completions", {"prompt": "x"} | wrong), 400)
    assert n_ended(server, "failed") == n_failed


def test_requests_of_clients_that_leave_are_cancelled(server: Server) -> None:
    """Its request ends, whether it was being streamed, was not begun to be, or waited."""
    load = server.session.load
    n_cancelled, n_failed = n_ended(server, "cancelled"), n_ended(server, "failed")

    def at_work() -> tuple[int, int]:
        load = server.session.load
        return load.n_running, load.n_waiting

    def idle() -> bool:
        return at_work() == (0, 0)

    stream = server.openai().completions.create(model="", stream=True, **LONG)
    next(iter(stream))
    stream.close()
    wait_until(idle)
    for n_waiting in (0, 1):
        first = server.session.submit(PROMPT, max_tokens=1900, **ENDLESS) if n_waiting else None
        with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1]))) as leaving:
            body = json.dumps(LONG).encode()
            head = (
                f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
            )
            leaving.sendall(head.encode() + b"\r\n\r\n" + body)
            wait_until(lambda n=n_waiting: at_work() == (1, n))  # type: ignore[misc]
        if first is not None:
            wait_until(lambda: server.session.load.n_waiting == 0)
            assert not first.done()
            first.cancel()
        wait_until(idle)
    wait_until(lambda: server.app.n_answers == 0)
    wait_until(lambda: n_ended(server, "cancelled") >= n_cancelled + 3)
    assert server.session.load.generated_tokens - load.generated_tokens < 3 * 1900
    assert n_ended(server, "cancelled") == n_cancelled + 3
    assert n_ended(server, "failed") == n_failed


def test_a_request_cut_off_while_sent_is_not_logged(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    port = int(server.url.rsplit(":", 1)[1])
    for part in (b"POST /v1/compl", b"POST /v1/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", port)) as breaking:
            breaking.sendall(part.replace(b"Content", b"Host: localhost\r\nContent"))
    assert server.get("/health").is_success
    assert not caplog.records


def test_a_slow_reader_does_not_delay_others(server: Server) -> None:
    body = json.dumps(LONG | {"max_tokens": 300, "logprobs": 20, "stream": True}).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
        slow.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)
        wait_until(lambda: server.session.load.n_running == 1)
        # It has the only place, and gives it back though nobody reads.
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).is_success
        answer = b"".join(iter(lambda: slow.recv(1 << 20), b""))
    assert answer.count(b'"token_logprobs"') == 300
    assert b"data: [DONE]" in answer


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
        # A name of theirs that leads here.
        refused(server.get("/v1/models", headers={"Host": "example.org"}), 403)
        assert server.get("/v1/models", headers={"Host": "localhost:1"}).is_success
    with serve(session, cors_origins=("http://example.org",)) as server:
        answer = server.post("/v1/completions", body, headers=other)
        assert answer.headers["access-control-allow-origin"] == "http://example.org"
        refused(server.get("/v1/models", headers={"Origin": "http://example.com"}), 403)


def test_timeout_cuts_a_generation(session: SpecSession) -> None:
    with serve(session, timeout=0.5) as server:
        answer = server.post("/v1/completions", LONG | {"max_tokens": 1900}).json()
        assert answer["choices"][0]["finish_reason"] == "length"
        n = answer["usage"]["completion_tokens"]
        assert n < 1900
        expected = session.generate(PROMPT, max_tokens=n + 1, **DRAWN).text
        assert expected.startswith(answer["choices"][0]["text"])
        first = session.submit(PROMPT, max_tokens=1900, **ENDLESS)
        error = refused(server.post("/v1/completions", LONG), 503)
        assert "before it had begun" in error["message"]
        first.cancel()


@pytest.mark.parametrize("stream", [False, True])
def test_choices_not_yet_begun_are_left_out_at_shutdown(session: SpecSession, stream: bool) -> None:
    body = {"prompt": PROMPT, "n": 2, "max_tokens": 1900, "stream": stream, **ENDLESS}
    with serve(session) as server, ThreadPoolExecutor() as pool:
        before = session.load.generated_tokens
        coming = pool.submit(server.post, "/v1/completions", body)
        while session.load.generated_tokens < before + 20:
            time.sleep(0.005)
        server.app.end_answers()
        answer = coming.result(60)
        assert answer.is_success, answer.text
        if not stream:
            (choice,) = answer.json()["choices"]
            assert choice["text"]
            assert choice["finish_reason"] == "length"
            assert answer.json()["usage"]["completion_tokens"] > 0
            return
        *events, last = [line[6:] for line in answer.text.splitlines() if line]
        assert last == "[DONE]"
        choices = [json.loads(one)["choices"][0] for one in events]
        assert {one["index"] for one in choices} == {0}
        assert choices[-1]["finish_reason"] == "length"


def test_requests_after_the_end_of_answers_are_cut(session: SpecSession) -> None:
    with serve(session) as server:
        server.app.end_answers()
        answer = server.post("/v1/completions", LONG | {"max_tokens": 1900})
        if answer.is_success:
            assert answer.json()["usage"]["completion_tokens"] < 1900
        else:
            refused(answer, 503)


def test_a_waiting_stream_sends_comments(
    session: SpecSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits long for the first token hears so, and what comes then, be it an error."""
    monkeypatch.setattr("specllama.server.answer._SILENCE", 0.02)
    streamed = {"prompt": "x", "max_tokens": 3, "seed": 0, "stream": True, **ENDLESS}
    with serve(session) as server:
        first = session.submit(PROMPT, max_tokens=1900, **ENDLESS)
        lines: list[str] = []
        with httpx.stream(
            "POST", f"{server.url}/v1/completions", json=streamed, timeout=60
        ) as coming:
            assert coming.status_code == 200
            assert coming.headers["cache-control"] == "no-cache"
            for line in coming.iter_lines():
                lines += [line] if line else []
                first.cancel()
    assert lines[0] == ":"
    events = [line.removeprefix("data: ") for line in lines if line != ":"]
    text = "".join(json.loads(one)["choices"][0]["text"] for one in events[:-1])
    expected = session.generate("x", max_tokens=3, temperature=1.0, seed=0, **ENDLESS)
    assert text == expected.text
    assert events[-1] == "[DONE]"
    with serve(session, timeout=0.2) as server:
        first = session.submit(PROMPT, max_tokens=1900, **ENDLESS)
        *signs, error = server.post("/v1/completions", streamed).text.split("\n\n")[:-1]
        first.cancel()
    assert set(signs) == {":"}
    assert "before it had begun" in json.loads(error.removeprefix("data: "))["error"]["message"]


def test_one_request_may_have_more_choices_than_the_queue(server: Server) -> None:
    """A call is taken as a whole, where it may wait."""
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
