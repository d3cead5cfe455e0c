"""/v1/verify/ahead as it is on the wire: generations over a connection, and what ends it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from prompts import PROMPTS
from serving import Server, refused, serve
from specllama import SpecSession
from specllama.requests.background import queue_load
from verifying import MODULE, Client, N, ahead, heard
from websockets.exceptions import ConnectionClosedOK, InvalidStatus


def test_a_socket_tells_every_round(server: Server, expected: list[int]) -> None:
    with ahead(server) as socket:
        socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": N}}))
        tokens: list[int] = []
        told = json.loads(socket.recv(30))
        assert told["prompt"] == server.session.tokenize(MODULE)
        tokens += told["tokens"]
        while not told["done"]:
            told = json.loads(socket.recv(30))
            assert "prompt" not in told
            tokens += told["tokens"]
        assert tokens == expected
        assert told["finish_reason"] == "length"


def test_one_generation_after_the_other_on_a_socket(server: Server, expected: list[int]) -> None:
    """Drafts that come too late are dropped, whatever they are."""
    with ahead(server) as socket:
        for n in (N, 1, 5):
            socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": n}}))
            assert heard(socket) == expected[:n]
            for late in ([10**6], "x", [5]):
                socket.send(json.dumps({"n_before": 3, "draft": late}))


def test_two_generations_at_once_on_a_socket(server: Server) -> None:
    with ahead(server) as socket:
        for _ in range(2):
            socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": 1500}}))
        while "error" not in (told := json.loads(socket.recv(30))):
            pass
    assert "wait for its end" in told["error"]["message"]
    wait_until_idle(server)


def test_a_socket_without_a_generation_is_closed(session: SpecSession, expected: list[int]) -> None:
    with serve(session, idle=1.0) as server, ahead(server) as socket:
        socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": N}}))
        assert heard(socket) == expected
        with pytest.raises(ConnectionClosedOK):
            socket.recv(30)


def test_a_text_to_copy_from(server: Server, expected: list[int]) -> None:
    """It changes no token; what is wrong with it is said."""
    reference = [int(token) for token in server.session.tokenize(PROMPTS["json"])]
    for given in ([*expected, *reference], []):
        with ahead(server) as socket:
            body = {"prompt": MODULE, "reference": given, "options": {"max_tokens": N}}
            socket.send(json.dumps(body))
            assert heard(socket) == expected
    refused(server.post("/v1/verify", {"prompt": "x", "reference": "x"}), 400, "reference")
    with ahead(server) as socket:
        socket.send(json.dumps({"prompt": "x", "reference": [10**6]}))
        assert json.loads(socket.recv(30))["status"] == 400


def wait_until_idle(server: Server) -> None:
    done = threading.Event()
    while queue_load(server.session).n_running:
        done.wait(0.005)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("x", None), ("[]", None), (b"\xff\xfe", None), ("{}", "n_before"),
        ({"n_before": "x"}, "n_before"), ({"n_before": -1}, "n_before"),
        ({"n_before": 10**30}, "n_before"), ({"n_before": 0, "draft": "x"}, "draft"),
        ({"n_before": 0, "draft": [10**6]}, "draft"), ({"n_before": 0, "draft": [10**30]}, None),
        ({"n_before": 0, "draft": [5] * 257}, "draft"),
        ({"n_before": 0, "draft": [5], "confidence": 5}, "confidence"),
        ({"n_before": 0, "draft": [5], "confidence": {}}, "confidence"),
        ({"n_before": 0, "draft": [5], "confidence": ["x"]}, "confidence"),
        ({"n_before": 0, "draft": [5], "confidence": [2]}, "confidence"),
    ],
    ids=lambda value: repr(value)[:50],
)  # fmt: skip
def test_drafts_on_a_socket_that_cannot_be_understood(
    server: Server, message: Any, param: str | None
) -> None:
    """They end it, with the reason."""
    with ahead(server) as socket:
        socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": 1500}}))
        socket.recv(30)
        socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
        while "error" not in (told := json.loads(socket.recv(30))):
            pass
    assert told["status"] == 400
    assert param is None or told["error"]["param"] == param


def test_who_may_open_a_socket(session: SpecSession) -> None:
    def status(server: Server, **headers: str) -> int:
        try:
            with ahead(server, additional_headers=headers):
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    with serve(session, api_keys=("secret",)) as server:
        assert status(server) == 403
        assert status(server, Authorization="Bearer wrong") == 403
        assert status(server, Authorization="Bearer secret") == 101
        assert refused(server.get("/v1/verify"), 401)["code"] == "invalid_api_key"
        refused(server.post("/v1/verify", {"prompt": "x"}), 401)
    with serve(session) as server:
        assert status(server, Origin="http://example.org") == 403
        assert status(server, Origin=server.url) == 101
        assert status(server) == 101


def test_nonsense_right_behind_an_opening_ends_it(server: Server) -> None:
    """Even if it comes before the generation has begun."""
    with ahead(server) as socket:
        socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": 200}}))
        socket.send("x")
        told: list[Any] = [json.loads(socket.recv(30))]
        while "error" not in told[-1]:
            told.append(json.loads(socket.recv(30)))
    assert not any(one["done"] for one in told[:-1])
    wait_until_idle(server)


def test_when_all_answers_are_ended_nothing_goes_on(session: SpecSession) -> None:
    """As at the server's end, when the time to finish is over; clients may go on elsewhere."""
    with serve(session) as server, ahead(server) as socket:
        client = Client(server, prompt=MODULE)
        socket.send(json.dumps({"prompt": MODULE, "options": {"max_tokens": 1500}}))
        told = json.loads(socket.recv(30))
        server.app.end_answers()
        refused(client.ask(client.body([])), 410)
        while "error" not in told:
            assert not told["done"]
            told = json.loads(socket.recv(30))
        assert told["status"] == 410
