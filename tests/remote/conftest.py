"""A server with the target, sessions that use it, and a local session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from serving import Server, serve
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import SpecSession
from targets import Connect


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with the bundled model and two slots."""
    options = EXACT | FIXED | {"exact": EXACT_HERE, "n_seq": 2, "verifies": True}
    with SpecSession(None, "ngram", **options) as session, serve(session) as running:
        yield running


@pytest.fixture(scope="module")
def local() -> Iterator[SpecSession]:
    """A local session with the same model, without drafts."""
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as session:
        yield session


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Opens sessions that use the server, and closes them after the test."""
    opened: list[SpecSession] = []

    def connect_one(draft: Any = None, **options: Any) -> SpecSession:
        given = {"target": server.url, "n_threads": 1} | options
        opened.append(SpecSession(draft=draft, **given))
        return opened[-1]

    yield connect_one
    for session in opened:
        session.close()
