"""/v1/verify with branches, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from prompts import PROMPTS
from serving import Server, refused, serve
from session_options import EXACT, EXACT_HERE, FIXED
from specllama import SpecSession
from verifying import Client, N

MODULE = PROMPTS["module"]
MORE: dict[str, Any] = {"exact": EXACT_HERE, "verifies": True}


def limits_of(server: Server) -> list[int]:
    """Return the limits of a server's drafts: length, width and size."""
    about = server.get("/v1/verify").json()
    return [about[name] for name in ("max_draft_length", "max_candidates", "max_draft_tokens")]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server whose memory does not support branches."""
    options: dict[str, Any] = MORE | {"n_seq": 2, "spec_tree": 3}
    with SpecSession(None, None, **(EXACT | FIXED | options)) as one, serve(one) as running:
        yield running


@pytest.fixture(scope="module")
def expected(server: Server) -> list[int]:
    return server.session.generate(MODULE, max_tokens=N).tokens


@pytest.fixture(scope="module")
def branching() -> Iterator[Server]:
    """A server that verifies branches."""
    options: dict[str, Any] = MORE | {"spec_tree": 3}
    with SpecSession(None, None, **(EXACT | FIXED | options)) as one, serve(one) as running:
        yield running


def test_branches_are_verified_and_counted(branching: Server, expected: list[int]) -> None:
    assert limits_of(branching) == [4, 3, 12]
    client = Client(branching, prompt=MODULE)
    # Three of five candidates at a position are verified, and twelve of twenty tokens.
    told = client.round([3, 3, 3, 3], *([0, i, 3, 3, 3] for i in range(4, 8)))
    assert (told["tokens"], told["drafted"]) == ([expected[1]], 12)
    told = client.round([3, 4], [0, *expected[2:5]], [1, 5])
    assert (told["tokens"], told["drafted"], told["accepted"]) == (expected[2:6], 6, 3)
    # After the main path's end, and after one of its tokens. A branch may repeat the main path.
    told = client.round([expected[6]], [1, expected[7]], [0, expected[6], 3])
    assert (told["tokens"], told["drafted"], told["accepted"]) == (expected[6:9], 3, 2)
    told = client.round([3], [0, 4], [0, 5], [0, expected[9]])
    assert (told["tokens"], told["drafted"]) == ([expected[9]], 3)
    body = client.body([3], [0, expected[10]])
    told = client.ask(body).json()
    assert (told["tokens"], told["drafted"]) == (expected[10:12], 2)
    assert client.ask(body).json() == told  # a repeated request
    client.end()


def test_a_server_without_branches_verifies_the_draft_alone(
    server: Server, expected: list[int]
) -> None:
    assert limits_of(server) == [4, 1, 4]
    client = Client(server, prompt=MODULE)
    told = client.round([3, 4], [0, *expected[1:4]])
    assert (told["tokens"], told["drafted"], told["accepted"]) == ([expected[1]], 2, 0)
    told = client.round([expected[2], 3], [1, *expected[3:5]])
    assert (told["tokens"], told["drafted"], told["accepted"]) == (expected[2:4], 2, 1)
    told = client.round([expected[4]], [1, *expected[5:7]])  # the branch continues the draft
    assert (told["tokens"], told["drafted"], told["accepted"]) == (expected[4:8], 3, 3)
    client.end()


BAD_BRANCHES: list[Any] = [
    "x", 5, {}, [5], ["x"], [[]], [[0]], [[0, "x"]], [["0", 5]], [[0, 1.5]], [[True, 5]],
    [[0, [5]]], [[-1, 5]], [[3, 5]], [[10**30, 5]], [[0, -1]], [[0, 10**6]], [[0, 10**30]],
    [[0, 5], [3, 5]], [[0, *[5] * 300]], [[0, 5]] * 255,
]  # fmt: skip


@pytest.mark.parametrize("branches", BAD_BRANCHES, ids=lambda value: repr(value)[:40])
def test_bad_branches_are_refused_and_lose_nothing(
    branching: Server, expected: list[int], branches: Any
) -> None:
    """The generation continues after them."""
    client = Client(branching, prompt=MODULE)
    error = refused(client.ask(client.body([3, 4]) | {"branches": branches}), 400)
    assert re.search(r"branch|Token -?\d+ is out of range", error["message"])
    assert error["param"] in ("branches", None)  # None: the error names no field
    assert client.round([3], [0, *expected[1:3]])["accepted"] == 2
    client.end()
