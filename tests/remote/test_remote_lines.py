"""A target over a slow, narrow or broken connection, and on a server that restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from meddling import Meddling, every
from prompts import PROMPTS
from serving import Server, serve
from session_options import EXACT, EXACT_HERE, FIXED
from slow_link import SlowLink, slow_link
from specllama import ArgumentError, Generation, RemoteError, SpecSession
from specllama.requests.background import queue_load
from specllama.session import BUNDLED_DRAFT

MODULE = PROMPTS["module"]
N = 30
OPTIONS: dict[str, Any] = {"max_tokens": N, "temperature": 1.0, "seed": 11, "logprobs": 1}


@pytest.fixture(scope="module")
def session() -> Iterator[SpecSession]:
    options = EXACT | FIXED | {"exact": EXACT_HERE, "n_seq": 2, "verifies": True}
    with SpecSession(None, "ngram", **options) as one:
        yield one


@pytest.fixture(scope="module")
def server(session: SpecSession) -> Iterator[Server]:
    with serve(session) as running:
        yield running


@pytest.fixture(scope="module")
def expected() -> Generation:
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as local:
        return local.generate(MODULE, **OPTIONS)


def same(found: Generation, expected: Generation) -> None:
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert found.finish_reason == expected.finish_reason
    assert found.stop_string == expected.stop_string
    ours = [(one.token, one.logprob) for one in found.logprobs]
    assert ours == [(one.token, one.logprob) for one in expected.logprobs]


LINES: dict[str, dict[str, Any]] = {
    "direct": {},
    "slow": {"delay": 0.005},
    "slow and lossy": {"delay": 0.005, "loss": 0.02, "seed": 1},
    "narrow": {"delay": 0.001, "rate": 1e6},
}


@pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["None", "ngram", "model"])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_slow_and_narrow_connections_change_no_token(
    server: Server, expected: Generation, line: dict[str, Any], draft: Any
) -> None:
    with (
        slow_link(server.url, **line) as link,
        SpecSession(target=link.url, draft=draft, n_threads=1) as remote,
    ):
        found = remote.generate(MODULE, **OPTIONS)
        same(found, expected)
        if "delay" in line:  # drafts pay
            assert (found.stats.drafted > 0) == (draft is not None)
        assert link.n_bytes > 1000


@pytest.mark.parametrize("stop", [None, ["self.size", "offset)\n"]], ids=["plain", "stop"])
def test_broken_connections_change_no_token(
    server: Server, session: SpecSession, stop: Any
) -> None:
    """The drafter breaks them, so that the test does not depend on the clock."""
    options = OPTIONS | {"max_tokens": 60, "temperature": 0.0, "stop": stop, "logprobs": None}
    expected = session.generate(MODULE, **options)
    with slow_link(server.url) as link:
        drafter = Meddling(expected.tokens, every(9, link.break_all))
        with SpecSession(
            target=link.url,
            draft=drafter,
            spec_length=3,
        ) as remote:
            link.cut(2500)
            found = remote.generate(MODULE, **options)
            same(found, expected)
            assert found.stats.accepted > 0
            assert link.n_connections > 1


def test_broken_connections_keep_text_held_back_for_stop_strings(server: Server) -> None:
    """The text held back keeps its log-probabilities."""
    options: dict[str, Any] = {"max_tokens": 30, "logprobs": 1, "temperature": 1.0, "seed": 11}
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as local:
        text = local.generate(MODULE, **options).text
        options["stop"] = text[:60] + "\N{ROCKET}"  # begins, and never ends
        expected = local.generate(MODULE, **options)
    with slow_link(server.url) as link:
        drafter = Meddling(expected.tokens, every(2, link.break_all, times=6))
        with SpecSession(target=link.url, draft=drafter) as remote:
            same(remote.generate(MODULE, **options), expected)


def test_the_next_generation_takes_one_round_trip(server: Server, expected: Generation) -> None:
    one_token = OPTIONS | {"max_tokens": 1}
    tokens = server.session.tokenize(MODULE)
    with slow_link(server.url) as link, SpecSession(target=link.url, draft=None) as remote:
        for _ in range(3):
            n_before = link.n_trips
            assert remote.generate(tokens, **one_token).tokens == expected.tokens[:1]
            assert link.n_trips == n_before + 1


def test_a_connection_that_returns_continues_the_generation(
    server: Server, expected: Generation
) -> None:
    with slow_link(server.url) as link:

        def down() -> None:
            link.refuse()
            link.break_all()
            threading.Timer(0.4, link.refuse, [False]).start()

        drafter = Meddling(expected.tokens, {2: down})
        with SpecSession(target=link.url, draft=drafter) as remote:
            same(remote.generate(MODULE, **OPTIONS), expected)


def test_a_connection_that_stays_down_raises_remote_error(
    server: Server, expected: Generation
) -> None:
    """The tokens so far are kept, and the session can be used again."""
    with (
        slow_link(server.url) as link,
        SpecSession(target=link.url, draft="ngram") as remote,
    ):
        link.break_all()
        link.cut(2500, stays_down=True)  # during the generation
        with pytest.raises(RemoteError, match=f"Cannot reach {link.url}"):
            remote.generate(MODULE, **OPTIONS)
        assert remote.last is not None
        n = len(remote.last.tokens)
        assert remote.last.tokens == expected.tokens[:n]
        assert 0 < n < N
        link.cut(None)
        link.refuse(False)
        same(remote.generate(MODULE, **OPTIONS), expected)


class Restarting:
    """A server at one port that can be stopped and started again."""

    def __init__(self, session: SpecSession) -> None:
        self._session = session
        self._stack = ExitStack()
        self.url = ""
        self.n_starts = 0
        self.start()

    def start(self, session: SpecSession | None = None) -> None:
        port = int(self.url.rpartition(":")[2] or 0)
        self.url = self._stack.enter_context(serve(session or self._session, at=port)).url
        self.n_starts += 1

    def stop(self) -> None:
        self._stack.close()

    def restart(self) -> None:
        self.stop()
        self.start()


def test_a_restarted_server_continues_the_generation(session: SpecSession) -> None:
    options: dict[str, Any] = {"max_tokens": 150, "temperature": 0.8, "seed": 1}
    expected = session.generate(MODULE, **options)
    server = Restarting(session)
    try:
        drafter = Meddling(expected.tokens, {1: server.restart, 3: server.restart}, n_most=1)
        with (
            slow_link(server.url, rate=2e5) as link,
            SpecSession(
                target=link.url,
                draft=drafter,
                spec_length=2,
            ) as remote,
        ):
            same(remote.generate(MODULE, **options), expected)
        assert server.n_starts == 3
    finally:
        server.stop()


def test_a_restarted_server_with_another_model_is_refused(
    session: SpecSession, smollm2: Path
) -> None:
    server = Restarting(session)
    with SpecSession(smollm2, verifies=True, n_ctx=256, **EXACT) as other:
        try:
            with SpecSession(target=server.url) as remote:
                tokens = remote.generate(MODULE, max_tokens=3).tokens
                server.stop()
                server.start(other)
                with pytest.raises(ArgumentError, match="vocabulary is not the client's"):
                    remote.generate(tokens, max_tokens=3)
        finally:
            server.stop()


def test_two_clients_of_a_server_get_the_same_tokens(server: Server, expected: Generation) -> None:
    found: list[Generation] = []

    def client() -> None:
        with SpecSession(target=server.url) as remote:
            found.extend(remote.generate(MODULE, **OPTIONS) for _ in range(3))

    threads = [threading.Thread(target=client) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for one in found:
        same(one, expected)


def test_an_expired_generation_is_opened_again(session: SpecSession, expected: Generation) -> None:
    """A late client opens it again after its last token. A generation is not idle while the server
    computes."""
    gone: list[int] = []
    with serve(session, idle=0.05) as server:
        one = httpx.post(f"{server.url}/v1/verify", json={"prompt": MODULE}, timeout=60).json()

        def wait_until_gone() -> None:
            wait_until(lambda: not server.app._verify._open)
            gone.append(1)

        wait_until_gone()
        body = {"round": 1, "n": 1, "hash": "x", "draft": []}
        again = httpx.post(f"{server.url}/v1/verify/{one['id']}", json=body, timeout=60)
        assert again.status_code == 410
        drafter = Meddling(expected.tokens, {2: wait_until_gone, 6: wait_until_gone}, n_most=2)
        with SpecSession(target=server.url, draft=drafter) as remote:
            same(remote.generate(MODULE, **OPTIONS), expected)
    assert len(gone) == 3


def test_a_long_prompt_does_not_count_as_idle(session: SpecSession) -> None:
    prompt = PROMPTS["near the limit"]
    expected = session.generate(prompt, max_tokens=3).tokens
    with serve(session, idle=0.001) as server:
        body = {"prompt": prompt[1:], "options": {"max_tokens": 3}}  # so that no cached prefix fits
        assert httpx.post(f"{server.url}/v1/verify", json=body, timeout=60).json()["tokens"]
        with SpecSession(target=server.url, draft=None) as remote:
            assert remote.generate(prompt, max_tokens=3).tokens == expected


def test_a_vanished_client_frees_its_slot(session: SpecSession, expected: Generation) -> None:
    with serve(session) as server, slow_link(server.url) as link:
        remote = SpecSession(target=link.url, draft=None)
        streams = [remote.stream(MODULE, max_tokens=1500)]
        next(streams[0])
        link.refuse()
        link.break_all()
        for _ in range(3):  # two of them may need its slot
            found = [session.submit(MODULE, **OPTIONS) for _ in range(2)]
            for one in found:
                same(one.result(60), expected)
        streams.clear()
        remote.close()
    wait_until(lambda: queue_load(session).n_running == 0)


def wait_until(condition: Callable[[], bool]) -> None:
    done = threading.Event()
    while not condition():
        done.wait(0.005)


def test_the_slow_link_delays_and_breaks(server: Server) -> None:
    """The tests rely on it: a transfer takes at least the given time, and breaks on request."""
    import time

    with slow_link(server.url, delay=0.05, rate=1e6) as link, httpx.Client() as client:
        client.get(f"{link.url}/health")
        began = time.monotonic()
        client.get(f"{link.url}/health")
        assert time.monotonic() - began > 0.1
        began = time.monotonic()
        client.post(f"{link.url}/tokenize", json={"content": "x " * 12500})
        assert time.monotonic() - began > 0.1 + 8 * 25000 / 1e6
        _check_breaks(link, client)


def _check_breaks(link: SlowLink, client: httpx.Client) -> None:
    n = link.n_connections
    link.break_all()
    link.refuse()
    with pytest.raises(httpx.TransportError):
        client.get(f"{link.url}/health")
    link.refuse(False)
    assert client.get(f"{link.url}/health").is_success
    assert link.n_connections == n + 1
