"""Connections of clients that do nothing with them."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import FIXED
from prompts import ENDLESS
from serving import Server, serve
from specllama import SpecSession
from websockets.sync.client import connect


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(n_ctx=2048, n_threads=1, n_gpu_layers=0, offers=True, **FIXED) as opened:
        yield opened


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specllama.server.connection._PATIENCE", 1)


def client_of(server: Server) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    return client


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_who_does_not_ask_is_hung_up_on(session: SpecSession, said: bytes) -> None:
    with serve(session) as server, client_of(server) as client:
        client.sendall(said)
        assert client.recv(1) == b""


def test_who_does_not_ask_again_is_hung_up_on(session: SpecSession) -> None:
    """Also behind a request whose body never comes, which was answered without it."""
    head = "POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
    with serve(session) as server, client_of(server) as client:
        client.sendall(head.encode())
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 404")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel cannot be asked for it")
def test_who_does_not_read_is_hung_up_on(session: SpecSession) -> None:
    body = {"prompt": "x", "max_tokens": 300, "logprobs": 20, "stream": True, **ENDLESS}
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}"
    with serve(session, unsent=4096) as server:
        server.get("/health")  # it is there
        client = client_of(server)
        client.sendall(head.encode() + b"\r\n\r\n" + content)
        wait_until(lambda: server.app.n_answers == 1)
        wait_until(lambda: server.n_connections == 0)
        wait_until(lambda: server.app.n_answers == 0)
        client.close()


def test_who_is_being_answered_is_not(session: SpecSession) -> None:
    content = b'{"content": "import os"}'
    head = f"POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n"
    with serve(session) as server, client_of(server) as client:
        client.sendall(head.encode() + content[:9])
        time.sleep(1.5)
        client.sendall(content[9:])
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 200")


def test_who_listens_is_not(session: SpecSession) -> None:
    """A WebSocket says nothing for as long as nothing is generated."""
    path = "/v1/verify/ahead"
    with serve(session) as server, connect(server.url.replace("http", "ws") + path) as listening:
        time.sleep(1.5)
        assert listening.ping().wait(60)
