"""Clients behind a proxy: each has its own limits, and none can claim another's address."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession
from specllama.__main__ import main

FULL = "A client may have at most 32 open generations."


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(None, None, **(EXACT | FIXED | {"verifies": True})) as one:
        yield one


def opened(server: Server, forwarded_for: str) -> httpx.Response:
    return httpx.post(
        f"{server.url}/v1/verify",
        json={"prompt": "x"},
        headers={"X-Forwarded-For": forwarded_for},
        timeout=60,
    )


def answer(server: Server, forwarded_for: str) -> str:
    """Open one more generation for a client; return the error, or ""."""
    told = opened(server, forwarded_for).json()
    return str(told["error"]["message"]) if "error" in told else ""


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",), ("10.0.0.0/8", "127.0.0.0/8")], ids=str)
def test_x_forwarded_for_is_trusted_from_configured_proxies_only(
    session: SpecSession, proxies: tuple[str, ...]
) -> None:
    """By default no address is trusted, not even this machine's."""
    with serve(session, proxies=proxies) as server:
        for _ in range(32):
            assert answer(server, "192.0.2.1") == ""
        assert answer(server, "192.0.2.1") == FULL
        assert answer(server, "192.0.2.2") == ("" if proxies else FULL)
        # Addresses that the client itself adds are ignored.
        assert answer(server, "192.0.2.2, 192.0.2.1") == FULL


def test_verify_generations_count_for_the_forwarded_client(session: SpecSession) -> None:
    with serve(session, proxies=["127.0.0.1"]) as server:
        assert opened(server, "192.0.2.7").is_success
        (one,) = server.app._verify._open.values()
        assert one.client == "192.0.2.7"


def test_bad_proxy_addresses_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("proxy", "127.0.0.1,", "10.0.0.1/8", "*", ""):
        with pytest.raises(SystemExit) as error:
            main(["serve", "--forwarded-allow-ips", given])
        assert error.value.code == 2
        assert "is not an IP address or network" in capsys.readouterr().err


def test_bad_cors_origins_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("example.com", "https://example.com/", "https://", ""):
        assert main(["serve", "--cors-origin", given]) == 2
        assert '--cors-origin must be like "https://example.com"' in capsys.readouterr().err
