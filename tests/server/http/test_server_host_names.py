"""Accepted host names. A foreign site can let its own name point to this machine."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from serving import serve
from session_options import FIXED
from specllama import SpecSession

HOSTS = ["127.0.0.1", "127.0.0.2", "127.1", "0.0.0.0", "::", "::1", "localhost", "box.lan", ""]

OWN = [
    "127.0.0.1", "127.0.0.1:8080", "192.168.1.7:80", "[::1]:80", "localhost", "LocalHost:1",
    "ui.localhost:3000",
]  # fmt: skip
FOREIGN = [
    "evil.com", "evil.com:80", "localhost.evil.com", "evillocalhost", "127.0.0.1.evil.com",
    "127.0.0.1@evil.com", "box.lan.evil.com", "2130706433", "0x7f000001", "",
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    with SpecSession(n_ctx=256, n_threads=1, n_gpu_layers=0, **FIXED) as opened:
        yield opened


def asked(url: str, **headers: str) -> int:
    return httpx.get(f"{url}/v1/models", headers=headers, timeout=60).status_code


@pytest.mark.parametrize("host", HOSTS)
def test_without_a_key_only_local_host_names_are_served(session: SpecSession, host: str) -> None:
    with serve(session, host=host) as server:
        assert {asked(server.url, Host=name) for name in OWN} == {200}
        assert {asked(server.url, Host=name) for name in FOREIGN} == {403}
        assert asked(server.url, Host="box.lan:80") == (200 if host == "box.lan" else 403)


def test_with_a_key_any_host_name_is_served(session: SpecSession) -> None:
    with serve(session, api_keys=("secret",)) as server:
        for name, key, status in (("evil.com", "x", 401), ("evil.com", "secret", 200)):
            assert asked(server.url, Host=name, Authorization=f"Bearer {key}") == status


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "box.lan"])
def test_only_pages_of_the_server_itself_may_send_requests(session: SpecSession, host: str) -> None:
    with serve(session, host=host) as server:
        for name in ("127.0.0.1:80", "localhost:80"):
            assert asked(server.url, Host=name, Origin=f"http://{name}") == 200
            for origin in ("http://evil.com", "http://localhost", "null", "http://127.0.0.2:80"):
                assert asked(server.url, Host=name, Origin=origin) == 403
        assert asked(server.url, Host="evil.com", Origin="http://evil.com") == 403
