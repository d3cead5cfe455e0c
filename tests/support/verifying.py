"""Both kinds of talk to /v1/verify, without any of the package's own client."""

from __future__ import annotations

import json
from typing import Any

import httpx
from serving import Server
from websockets.sync.client import ClientConnection, connect


def ahead(server: Server, **options: Any) -> ClientConnection:
    """Open a WebSocket to generations that go ahead."""
    url = "ws" + server.url.removeprefix("http") + "/v1/verify/ahead"
    return connect(url, proxy=None, compression=None, **options)


def heard(socket: ClientConnection) -> list[int]:
    """Return the tokens of a generation to its end."""
    tokens: list[int] = []
    told: dict[str, Any] = {"done": False}
    while not told["done"]:
        told = json.loads(socket.recv(30))
        tokens += told["tokens"]
    return tokens


def refused(answer: httpx.Response, status: int, param: str | None = None) -> dict[str, Any]:
    """Return the error that an answer is, checked."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["message"].endswith(".")
    assert param is None or error["param"] == param, error
    return error
