"""Idle connections, and limits on connections."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from prompts import ENDLESS
from serving import Server, serve, wait_until
from session_options import FIXED
from specllama import SpecSession
from specllama.server.app import App
from specllama.server.http.graceful import GracefulServer
from specllama.server.settings import Settings


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(n_ctx=2048, n_threads=1, n_gpu_layers=0, verifies=True, **FIXED) as opened:
        yield opened


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specllama.server.http.connection._PATIENCE", 1)


def client_of(server: Server) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    return client


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_clients_that_send_no_request_are_disconnected(session: SpecSession, said: bytes) -> None:
    with serve(session) as server, client_of(server) as client:
        client.sendall(said)
        assert client.recv(1) == b""


def test_idle_connections_are_closed_after_an_answer(session: SpecSession) -> None:
    """Also after a request that was answered before its body arrived."""
    head = "POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
    with serve(session) as server, client_of(server) as client:
        client.sendall(head.encode())
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 404")


def ask_and_do_not_read(server: Server) -> socket.socket:
    """Return a client that reads nothing of an answer that fills its buffers."""
    body = {"prompt": "x", "max_tokens": 300, "logprobs": 20, "stream": True, **ENDLESS}
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}"
    server.get("/health")  # it serves
    client = client_of(server)
    client.sendall(head.encode() + b"\r\n\r\n" + content)
    wait_until(lambda: server.app.n_answers == 1)
    return client


@pytest.mark.skipif(sys.platform != "linux", reason="requires TCP_USER_TIMEOUT")
def test_clients_that_do_not_read_are_disconnected(session: SpecSession) -> None:
    with serve(session, unsent=4096) as server, ask_and_do_not_read(server):
        wait_until(lambda: server.n_connections == 0)
        wait_until(lambda: server.app.n_answers == 0)


def test_a_server_that_ends_disconnects_clients_that_do_not_read(
    session: SpecSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specllama.server.http.connection._PATIENCE", 600)
    with serve(session, unsent=4096) as server:
        client = ask_and_do_not_read(server)
        time.sleep(1)  # until the buffers are full
    with client:
        assert server.n_connections == 0


def test_clients_that_wait_for_an_answer_stay_connected(session: SpecSession) -> None:
    content = b'{"content": "import os"}'
    head = f"POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n"
    with serve(session) as server, client_of(server) as client:
        client.sendall(head.encode() + content[:9])
        time.sleep(1.5)
        client.sendall(content[9:])
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 200")


def test_the_longest_silent_client_is_disconnected_for_a_new_one(
    session: SpecSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that are silent before or during a request do not keep others out. One log line
    reports it."""
    monkeypatch.setattr("specllama.server.http.connection._PATIENCE", 600)
    with serve(session, most_connections=4) as server:
        clients = [client_of(server) for _ in range(4)]
        for i, client in enumerate(clients):
            client.sendall(b"POST /tokenize HTTP/1.1\r\nContent-Le" if i % 2 else b"")
        wait_until(lambda: server.n_connections == 4)
        for _ in range(3):
            assert server.get("/health").is_success
        assert clients[0].recv(1) == b""
        assert server.n_connections <= 4
        for client in clients:
            client.close()
    told = [one for one in caplog.messages if "the maximum of this process" in one]
    assert len(told) == 1


def test_clients_that_wait_for_answers_are_not_disconnected_for_a_new_one(
    session: SpecSession,
) -> None:
    body = {"prompt": "x", "max_tokens": 1500, "stream": True, **ENDLESS}
    with serve(session, most_connections=2) as server, ThreadPoolExecutor() as pool:
        answers = [pool.submit(server.post, "/v1/completions", body) for _ in range(2)]
        wait_until(lambda: server.app.n_answers == 2)
        waiting = pool.submit(server.get, "/health")
        assert waiting.result(60).is_success
        assert [one.result(60).text.count("[DONE]") for one in answers] == [1, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="a shell sets the limit of open files")
def test_too_many_connections_give_one_line_in_the_log() -> None:
    """The server keeps working at the limit of open files, and logs it only once."""
    command = f"ulimit -n 120; exec {sys.executable} -m specllama serve --port 0 -t 1 -ngl 0 -c 256"
    server = subprocess.Popen(["bash", "-c", command], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        port = int(url.rsplit(":", 1)[1])
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        for _ in range(3):
            assert httpx.get(f"{url}/health", timeout=60).is_success
        for client in clients:
            client.close()
        server.terminate()
        said = server.stderr.read().splitlines()
        assert server.wait(60) == 0
        assert len(said) == 2  # the first is about the model
        assert "the maximum of this process" in said[1]
    finally:
        server.kill()
        server.communicate()


def test_bytes_that_are_not_http_get_a_400(session: SpecSession) -> None:
    with serve(session) as server, client_of(server) as client:
        client.sendall(b"hello\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert "send HTTP/1.1" in json.loads(body)["error"]["message"]


def test_a_connection_older_than_the_server_has_tcp_nodelay(
    session: SpecSession,
) -> None:
    """The connection waits in the kernel until the server accepts it."""
    server = GracefulServer(App(session, Settings(name="test")), seconds=0)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()),
    ):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: bool(server.server_state.connections))
            (connection,) = server.server_state.connections
            taken = connection.transport.get_extra_info("socket")
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        finally:
            server.should_exit = True
            thread.join()
