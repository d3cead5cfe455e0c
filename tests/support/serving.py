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
    """What a test wants of a server.

    Attributes:
        session: What answers.
        url: Where it listens.
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
        """Connections that are open."""
        return len(self._server.server_state.connections)

    def openai(self, key: str = "none", **options: Any) -> openai.OpenAI:
        """Return the official client, closed with the server: an error that a test has caught would
        else leave its connection to the collector of garbage."""
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **options)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        """Close all clients there were."""
        for client in self._clients:
            client.close()

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """Send a body as JSON, or as it is if it is bytes."""
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
    """Run a server in a thread, at a port, or at any that is free. unsent: bytes of an answer that
    the kernel takes from it while nobody reads them; None: as many as it likes, megabytes.
    most_connections: as GracefulServer has it."""
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
    """Run a server for each of some scripted models, which read any prompt.

    Args:
        folder: Where the models are written.
        models: By name: arguments of `write_scripted_model`.
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
    """Return the error that an answer is, checked."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert error["message"].endswith(".")
    assert param is None or error["param"] == param, error
    return error


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
