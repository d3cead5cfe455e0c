"""A stalled server: it sends nothing, and its connections stay open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from prompts import ENDLESS
from serving import Server
from slow_link import SlowLink, slow_link
from specllama import ClosedError, SpecSession
from specllama.requests.background import queue_load
from targets import MODULE

ENDLESSLY: dict[str, Any] = {"max_tokens": 1500, **ENDLESS}


@pytest.fixture
def link(server: Server) -> Iterator[SlowLink]:
    with slow_link(server.url, window=4096) as line:
        yield line
        line.stalls = False


def close(session: SpecSession) -> None:
    """Close a session, which would take ten minutes if it waited for the server."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()


@pytest.mark.parametrize("n_seq", [1, 2])
def test_a_session_on_a_stalled_server_closes_at_once(link: SlowLink, n_seq: int) -> None:
    session = SpecSession(target=link.url, n_seq=n_seq, draft="ngram")
    handles = [session.submit(MODULE, **ENDLESSLY) for _ in range(n_seq)]
    for handle in handles:
        next(iter(handle))
    link.stalls = True
    n_tokens = -1
    while n_tokens != (n_tokens := queue_load(session).generated_tokens):
        threading.Event().wait(0.1)
    close(session)
    for handle in handles:
        with pytest.raises(ClosedError, match="closed before the request had ended"):
            handle.result(0)


def test_a_stream_on_a_stalled_server_is_abandoned_at_once(link: SlowLink) -> None:
    """With several sequences, rounds run without their readers."""
    with SpecSession(target=link.url, n_seq=2, draft=None) as session:
        streams = [session.stream(MODULE, **ENDLESSLY) for _ in range(2)]
        for stream in streams:
            next(stream)
        link.stalls = True
        close(session)


def test_a_session_closes_while_a_generation_opens(link: SlowLink) -> None:
    session = SpecSession(target=link.url, draft=None)
    tokens = session.tokenize(MODULE)  # the server tokenizes
    link.stalls = True
    handle = session.submit(tokens, **ENDLESSLY)
    while not handle.begun:
        threading.Event().wait(0.01)
    threading.Event().wait(0.1)
    close(session)
    with pytest.raises(ClosedError, match="closed before the request had"):
        handle.result(0)
