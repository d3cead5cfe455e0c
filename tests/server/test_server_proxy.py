"""Clients behind a proxy: each has its own limits, and none can pretend to be another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.__main__ import main
from verifying import ahead
from websockets.exceptions import ConnectionClosed

FULL = "A client may have 32 connections open."


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(None, None, **(EXACT | FIXED | {"offers": True})) as one:
        yield one


def answer(server: Server, forwarded_for: str) -> str:
    """Return the error for a client that opens one more connection; "": no error."""
    with ahead(server, additional_headers={"X-Forwarded-For": forwarded_for}) as socket:
        with suppress(ConnectionClosed):  # what was said before that is read, too
            socket.send(json.dumps({"prompt": "x", "options": {"max_tokens": 1}}))
        told = json.loads(socket.recv(30))
    return str(told["error"]["message"]) if "error" in told else ""


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",), ("10.0.0.0/8", "127.0.0.0/8")], ids=str)
def test_x_forwarded_for_is_believed_from_trusted_proxies_only(
    session: SpecSession, proxies: tuple[str, ...]
) -> None:
    """If it is a proxy that is believed; by default nobody is, not this machine either."""
    with serve(session, proxies=proxies) as server, ExitStack() as stack:
        for _ in range(32):
            headers = {"X-Forwarded-For": "192.0.2.1"}
            stack.enter_context(ahead(server, additional_headers=headers))
        assert answer(server, "192.0.2.1") == FULL
        assert answer(server, "192.0.2.2") == ("" if proxies else FULL)
        # What a client itself has put before is not believed.
        assert answer(server, "192.0.2.2, 192.0.2.1") == FULL


def test_verify_generations_count_for_the_forwarded_client(session: SpecSession) -> None:
    with serve(session, proxies=["127.0.0.1"]) as server:
        opened = httpx.post(
            f"{server.url}/v1/verify",
            json={"prompt": "x"},
            headers={"X-Forwarded-For": "192.0.2.7"},
            timeout=60,
        )
        assert opened.is_success
        (one,) = server.app._verify._open.values()
        assert one.client == "192.0.2.7"


def test_bad_proxy_addresses_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("proxy", "127.0.0.1,", "10.0.0.1/8", "*", ""):
        with pytest.raises(SystemExit) as error:
            main(["serve", "--forwarded-allow-ips", given])
        assert error.value.code == 2
        assert "is no IP address or network" in capsys.readouterr().err


def test_bad_cors_origins_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("example.com", "https://example.com/", "https://", ""):
        assert main(["serve", "--cors-origin", given]) == 2
        assert '--cors-origin must be like "https://example.com"' in capsys.readouterr().err
