"""The server of most tests here. A module may change the session's options with SESSION, and the
server's with SETTINGS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Server, serve
from session_options import EXACT, FIXED
from specllama import SpecSession


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Iterator[SpecSession]:
    """A session with the bundled model."""
    with SpecSession(**(EXACT | FIXED | getattr(request.module, "SESSION", {}))) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, session: SpecSession) -> Iterator[Server]:
    with serve(session, **getattr(request.module, "SETTINGS", {})) as running:
        yield running
