"""A server that has the target, sessions on it in both ways, and one without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import EXACT, EXACT_HERE, FIXED
from prompts import PROMPTS
from serving import Server, serve
from specllama import Generation, SpecSession

Connect = Callable[..., SpecSession]
MODULE = PROMPTS["module"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The bundled model with two places."""
    options = EXACT | FIXED | {"exact": EXACT_HERE, "n_seq": 2, "offers": True}
    with SpecSession(None, "ngram", **options) as session, serve(session) as running:
        yield running


@pytest.fixture(scope="module")
def local() -> Iterator[SpecSession]:
    """The same model here, without drafts."""
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as session:
        yield session


@pytest.fixture(params=["lockstep", "ahead"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(server: Server, mode: str) -> Iterator[Connect]:
    """Opens sessions on the server, and closes them after the test."""
    opened: list[SpecSession] = []

    def connect_one(draft: Any = None, **options: Any) -> SpecSession:
        given = {"target": server.url, "target_mode": mode, "n_threads": 1} | options
        opened.append(SpecSession(draft=draft, **given))
        return opened[-1]

    yield connect_one
    for session in opened:
        session.close()


def same(found: Generation, expected: Generation) -> None:
    """Check that two generations gave the same."""
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert found.finish_reason == expected.finish_reason
    assert [(one.token, one.logprob, one.top) for one in found.logprobs] == [
        (one.token, one.logprob, one.top) for one in expected.logprobs
    ]
