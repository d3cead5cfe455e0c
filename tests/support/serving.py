"""A real server on loopback, in a thread of this process, and its clients."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
from scripted_model import write_scripted_model
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.server.app import App
from specllama.server.http.graceful import GracefulServer
from specllama.server.settings import Settings

SCRIPTED = {**EXACT, **FIXED, "kv_type": "f16"}
"""Options of sessions with scripted models."""


class Server:
    """A running server.

    Attributes:
        session: Session that answers.
        url: Address of the server.
        app: The application.
    """

    def __init__(self, session: SpecSession, url: str, app: App, server: GracefulServer) -> None:
        self.session = session
        self.url = url
        self.app = app
        self._server = server
        self._clients: list[openai.OpenAI] = []

    @property
    def n_connections(self) -> int:
        """Return the number of open connections."""
        return len(self._server.server_state.connections)

    def openai(self, key: str = "none", **options: Any) -> openai.OpenAI:
        """Return the official client, which is closed with the server: an error caught by a test
        would keep its connection open until it is garbage-collected."""
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **options)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        """Close all clients."""
        for client in self._clients:
            client.close()

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """Send a body as JSON (bytes: unchanged)."""
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return httpx.post(self.url + path, **content, **options, timeout=60)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, **options, timeout=60)


@contextmanager
def serve(
    session: SpecSession,
    *,
    at: int = 0,
    proxies: Sequence[str] = (),
    unsent: int | None = None,
    most_connections: int | None = None,
    **settings: Any,
) -> Iterator[Server]:
    """Run a server in a thread, at a port (0: any free one). unsent: bytes of an answer that the
    kernel buffers for a client that does not read (None: no limit, megabytes). most_connections:
    see GracefulServer."""
    app = App(session, Settings(**({"name": "test"} | settings)))
    server = GracefulServer(app, seconds=0, proxies=proxies, most_connections=most_connections)
    with socket.create_server(("127.0.0.1", at)) as listening:
        port = listening.getsockname()[1]
        if unsent is not None:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, unsent)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        running = Server(session, f"http://127.0.0.1:{port}", app, server)
        try:
            yield running
        finally:
            running.close_clients()
            server.should_exit = True
            thread.join()


@contextmanager
def serve_scripted(
    folder: Path, models: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Server]]:
    """Run a server for each of some scripted models, which accept any prompt.

    Args:
        folder: Folder for the models.
        models: Arguments of `write_scripted_model` by name.
    """
    with ExitStack() as stack:
        found = {}
        for name, options in models.items():
            path = folder / f"{name}.gguf"
            write_scripted_model(path, n_ctx=2048, any_text=True, **options)
            session = stack.enter_context(SpecSession(path, **SCRIPTED))
            found[name] = stack.enter_context(serve(session))
        yield found


def refused(answer: httpx.Response, status: int, param: str | None = None) -> dict[str, Any]:
    """Check an error answer, and return the error."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert error["message"].endswith(".")
    assert param is None or error["param"] == param, error
    return error


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition for a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
