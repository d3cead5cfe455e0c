"""Requests that wait for a draft from outside, and others that wait for their place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from prompts import PROMPTS
from rounds import rounds_of
from session_options import EXACT_HERE
from specllama import ClosedError, Generation, SpecSession
from specllama.requests.request import Hosted, Request

Open = Callable[..., SpecSession]
MODULE = PROMPTS["module"]
N = 24


@pytest.fixture
def session(open_session: Open) -> SpecSession:
    """One place."""
    return open_session(draft=None, offers=True, exact=EXACT_HERE)


@pytest.fixture
def pair(open_session: Open) -> SpecSession:
    """Two places."""
    return open_session(draft=None, offers=True, exact=EXACT_HERE, n_seq=2)


def test_who_waits_does_not_keep_others_waiting(pair: SpecSession) -> None:
    expected = pair.generate(MODULE, max_tokens=N).tokens
    waiting = pair.host(MODULE, paced=True, max_tokens=N)
    rounds_of(waiting)
    for _ in range(3):
        assert pair.generate(MODULE, max_tokens=N).tokens == expected
        assert pair.submit(MODULE, max_tokens=N).result(60).tokens == expected
    assert not waiting.done()
    waiting.offer(0, [])
    assert rounds_of(waiting)[0].tokens == expected[1:2]
    waiting.cancel()
    assert waiting.result(60).tokens == expected[:2]


def test_who_waits_takes_no_processor(pair: SpecSession) -> None:
    handles = [pair.host(MODULE, paced=True, max_tokens=N) for _ in range(2)]
    for handle in handles:
        rounds_of(handle)
    steps = []
    step = type(pair.core).step
    worker = pair._worker  # who steps, and would all the time

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(pair.core, name)

        def step(self) -> bool:
            steps.append(1)
            return step(pair.core)

    worker._core = Counting()  # type: ignore[assignment]
    used = time.process_time()
    time.sleep(0.3)
    used = time.process_time() - used
    n_idle = len(steps)
    handles[0].offer(0, [])
    rounds_of(handles[0])
    assert n_idle == 0, used
    assert len(steps) == 1
    for handle in handles:
        handle.cancel()
        handle.result(60)


def test_who_waits_gives_his_place_to_others(session: SpecSession) -> None:
    expected = session.generate(MODULE, max_tokens=N).tokens
    waiting = session.host(MODULE, paced=True, max_tokens=N)
    n = rounds_of(waiting)[0].n_generated
    assert session.submit(MODULE, max_tokens=N).result(60).tokens == expected
    with pytest.raises(ClosedError, match="waited for a draft while others waited"):
        waiting.result(60)
    with pytest.raises(ClosedError, match="waited for a draft while others waited"):
        rounds_of(waiting)
    waiting.offer(0, [5])  # nobody hears it
    so_far = waiting.so_far()
    assert so_far is not None
    assert so_far.tokens == expected[:n]
    again = session.host(MODULE, generated=so_far.tokens, max_tokens=N)
    assert again.result(60).tokens == expected


def test_two_that_wait_and_a_third(pair: SpecSession) -> None:
    """The one that has waited longer gives up its place; the other keeps it."""
    first, second = (pair.host(MODULE, paced=True, max_tokens=N) for _ in range(2))
    for handle in (first, second):
        rounds_of(handle)
    first.offer(0, [])
    rounds_of(first)  # now the second has waited longer
    assert pair.submit(MODULE, max_tokens=3).result(60).finish_reason == "length"
    with pytest.raises(ClosedError):
        second.result(60)
    assert not first.done()
    first.cancel()


def test_cancelling_who_waits(session: SpecSession) -> None:
    waiting = session.host(MODULE, paced=True, max_tokens=N)
    tokens = rounds_of(waiting)[0].tokens
    waiting.cancel()
    result: Generation = waiting.result(60)
    assert (result.tokens, result.finish_reason) == (tokens, None)
    (last,) = rounds_of(waiting)
    assert last.done
    assert rounds_of(waiting) == []


def test_cancelling_before_the_first_round(session: SpecSession) -> None:
    first = session.host(MODULE, paced=True, max_tokens=N)
    rounds_of(first)
    second = session.host(MODULE, paced=True, max_tokens=N)
    second.cancel()
    with pytest.raises(ClosedError, match="before it had begun"):
        rounds_of(second)
    first.cancel()


def test_closing_while_one_waits(session: SpecSession) -> None:
    waiting = session.host(MODULE, paced=True, max_tokens=N)
    rounds_of(waiting)
    session.close()
    with pytest.raises(ClosedError, match="session was closed"):
        waiting.result(60)
    with pytest.raises(ClosedError):
        rounds_of(waiting)


def test_a_draft_that_comes_before_the_first_token(session: SpecSession) -> None:
    """It waits for the round that may verify it."""
    expected = session.generate(MODULE, max_tokens=N).tokens
    session.generate("x", max_tokens=1)
    prompt = session.tokenize(MODULE)
    options = Request.make(session, prompt, {"max_tokens": N}, hosted=Hosted([], paced=True))
    stream = session.core.start(prompt, options._core_options())
    stream.offer(len(prompt), expected[:5], [], [])
    for _ in range(3):
        session.core.step()
    assert list(stream.tokens) == expected[:6]
    assert stream.stats.accepted == 4
    stream.cancel()


def test_who_is_over_waits_for_no_draft(session: SpecSession) -> None:
    """Neither when another takes his place and waits there, nor after the session was closed."""
    prompt = session.tokenize(MODULE)
    options = Request.make(session, prompt, {"max_tokens": N}, hosted=Hosted([], paced=True))
    first = session.core.start(prompt, options._core_options())
    session.core.step()
    assert first.waits()
    second = session.core.start(prompt, options._core_options())
    session.core.step()
    assert second.waits()
    assert not first.waits()
    session.close()
    assert not second.waits()
