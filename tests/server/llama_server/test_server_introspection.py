"""Endpoints for front ends of llama.cpp's server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import Server

TEXT = "def f(x):\n    return x\n"

SESSION = {"n_seq": 2}


def test_tokenize_and_detokenize_are_inverse(server: Server) -> None:
    tokens = server.post("/tokenize", {"content": TEXT}).json()["tokens"]
    assert tokens == server.session.tokenize(TEXT, add_special=False)
    pieces = server.post("/tokenize", {"content": TEXT, "with_pieces": True}).json()["tokens"]
    assert [one["id"] for one in pieces] == tokens
    assert "".join(one["piece"] for one in pieces) == TEXT
    # A character of several tokens. None of them is text alone.
    body = {"content": "é\N{PARTY POPPER}", "with_pieces": True}
    pieces = [one["piece"] for one in server.post("/tokenize", body).json()["tokens"]]
    whole = b"".join(bytes(one) if isinstance(one, list) else one.encode() for one in pieces)
    assert whole.decode() == body["content"]
    assert any(isinstance(one, list) for one in pieces)
    special = server.post("/tokenize", {"content": TEXT, "add_special": True}).json()["tokens"]
    assert special == server.session.tokenize(TEXT)
    assert server.post("/detokenize", {"tokens": tokens}).json() == {"content": TEXT}
    # Blanks before punctuation, which llama.cpp removes with some vocabularies.
    text = "x = 'some' , y ? he 's ' re !"
    body = {"content": text, "add_special": False, "with_pieces": True}
    pieces = server.post("/tokenize", body).json()["tokens"]
    assert "".join(one["piece"] for one in pieces) == text
    ids = [one["id"] for one in pieces]
    assert server.post("/detokenize", {"tokens": ids}).json() == {"content": text}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {"content": 5}, "content"),
        ("/tokenize", {"content": "x", "add_special": 1}, "add_special"),
        ("/apply-template", {}, "messages"),
        ("/apply-template", {"messages": [{"role": "user", "content": "x"}]}, None),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": "x"}, "tokens"),
        ("/detokenize", {"tokens": ["x"]}, "tokens"),
        ("/detokenize", {"tokens": [-7]}, "tokens"),
        ("/detokenize", {"tokens": [10**12]}, "tokens"),
    ],
)
def test_bad_tokenize_requests_name_the_field(
    server: Server, path: str, body: object, param: str | None
) -> None:
    answer = server.post(path, body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_at_most_two_texts_are_tokenized_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More threads would take processors from the model."""
    tokenize, lock = server.session.tokenize, threading.Lock()
    at_once = most = 0

    def slowly(*arguments: Any, **options: Any) -> list[int]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        return tokenize(*arguments, **options)

    monkeypatch.setattr(server.session, "tokenize", slowly)
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: server.post("/tokenize", {"content": TEXT}), range(8))]
    assert all(answer.status_code == 200 for answer in answers)
    assert most == 2


def test_props_and_slots_describe_the_server(server: Server) -> None:
    props = server.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == server.session.n_ctx
    assert (props["total_slots"], props["model_alias"]) == (2, "test")
    assert props["chat_template"] == ""
    assert "tool_calls" not in props
    slots = server.get("/slots").json()
    assert [(one["id"], one["is_processing"]) for one in slots] == [(0, False), (1, False)]


def test_unknown_paths_are_refused_with_a_reason(server: Server) -> None:
    answer = server.post("/v1/embeddings", {"input": "x", "model": "m"})
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert (
        message == "/v1/embeddings is not served here; embeddings and rankings are not supported."
    )


def test_unexpected_errors_have_the_format_of_the_api(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> list[int]:
        raise ZeroDivisionError

    monkeypatch.setattr(server.session, "tokenize", broken)
    answer = server.post("/tokenize", {"content": "x"})
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "Internal server error; see the server's log."
    monkeypatch.undo()
    assert server.post("/tokenize", {"content": "x"}).status_code == 200
