"""Requests whose clients disconnect, or that exceed the timeout."""

from __future__ import annotations

import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server, refused, serve, wait_until
from specllama import SpecSession
from specllama.requests.background import queue_load

PROMPT = PROMPTS["module"]
DRAWN: dict[str, Any] = {"temperature": 0.8, "seed": 1, **ENDLESS}
LONG: dict[str, Any] = {"prompt": PROMPT, "max_tokens": 1900, **DRAWN}

SESSION = {"max_queue": 2}
SETTINGS = {"max_body": 100_000}


def n_ended(server: Server, how: str) -> int:
    (n,) = re.findall(rf'outcome="{how}"}} (\d+)', server.get("/metrics").text)
    return int(n)


def test_refused_requests_are_not_counted_as_failed(server: Server) -> None:
    """This includes requests that only the session refuses."""
    n_failed = n_ended(server, "failed")
    for wrong in ({"grammar": "root ::= ("}, {"regex": "(?=a)"}):
        refused(server.post("/v1/completions", {"prompt": "x"} | wrong), 400)
    assert n_ended(server, "failed") == n_failed


def test_requests_of_clients_that_disconnect_are_cancelled(server: Server) -> None:
    """A request ends during its stream, before its first part, and in the queue."""
    load = queue_load(server.session)
    n_cancelled, n_failed = n_ended(server, "cancelled"), n_ended(server, "failed")

    def at_work() -> tuple[int, int]:
        load = queue_load(server.session)
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
            wait_until(lambda: queue_load(server.session).n_waiting == 0)
            assert not first.done()
            first.cancel()
        wait_until(idle)
    wait_until(lambda: server.app.n_answers == 0)
    wait_until(lambda: n_ended(server, "cancelled") >= n_cancelled + 3)
    assert queue_load(server.session).generated_tokens - load.generated_tokens < 3 * 1900
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
        wait_until(lambda: queue_load(server.session).n_running == 1)
        # It has the only slot, and frees it although its client does not read.
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).is_success
        answer = b"".join(iter(lambda: slow.recv(1 << 20), b""))
    assert answer.count(b'"token_logprobs"') == 300
    assert b"data: [DONE]" in answer


def test_a_timeout_cuts_a_generation(session: SpecSession) -> None:
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
        before = queue_load(session).generated_tokens
        coming = pool.submit(server.post, "/v1/completions", body)
        while queue_load(session).generated_tokens < before + 20:
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


def test_requests_during_shutdown_are_cut_or_refused(session: SpecSession) -> None:
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
    """A client that waits for its first token gets comments, then the answer or an error."""
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
