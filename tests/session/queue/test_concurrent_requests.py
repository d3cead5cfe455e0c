"""Requests next to cancelled and dropped ones, and which objects they keep alive."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import ENDLESS, LONG, PROMPTS
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, BusyError, ClosedError, Drafter, SpecSession
from specllama.requests.background import queue_load


def test_leaving_a_loop_over_a_handle_keeps_the_unread_chunks(open_session: Open) -> None:
    handle = open_session().submit("x", max_tokens=20, **ENDLESS)
    whole = handle.result()
    first, second = next(iter(handle)), next(iter(handle))
    rest = list(handle)
    tokens = [chunk.token for chunk in (first, second, *rest) if chunk.token is not None]
    assert tokens == whole.tokens
    assert list(handle) == []


def test_a_dropped_session_is_freed_without_garbage_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        session = SpecSession(n_threads=1, n_gpu_layers=0, n_seq=2)
        session.generate("x", max_tokens=2)
        session.generate(["x", "y"], max_tokens=2)
        asyncio.run(session.agenerate("x", max_tokens=2))
        ended = threading.Event()
        session.submit("x", max_tokens=2).add_done_callback(lambda _: ended.set())
        assert ended.wait(60)
        assert session.last is not None
        gone = weakref.ref(session)
        del session
        for _ in range(100):  # the thread may hold a request for a moment
            if gone() is None:
                break
            time.sleep(0.05)
        assert gone() is None
    finally:
        gc.enable()


def test_a_bad_prompt_is_refused_before_the_first_of_the_list_is_answered(
    open_session: Open,
) -> None:
    session = open_session(max_queue=0)
    with pytest.raises(ArgumentError, match=r"Token 1000000 .* is out of range"):
        session.generate(["x", "y", "z", [10**6]], max_tokens=50)
    assert queue_load(session).generated_tokens == 0


def test_a_beam_search_between_two_rounds_ends_no_request() -> None:
    with SpecSession(n_threads=1, n_gpu_layers=0, exact=EXACT_HERE) as session:
        handle = session.submit(PROMPTS["module"], **LONG)
        next(iter(handle))
        while not handle.done():
            session.beam_search("x", n_beams=2, max_tokens=2)
        assert len(handle.result().tokens) == LONG["max_tokens"]


class Waiting(Drafter):
    """Drafts nothing, and waits once."""

    def __init__(self) -> None:
        self.inside, self.may_go_on = threading.Event(), threading.Event()

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.inside.set()
        self.may_go_on.wait(60)
        return []


def test_a_request_can_be_cancelled_while_it_waits_for_a_slot() -> None:
    """Streams use all slots, and are in a round when its turn comes."""
    drafter = Waiting()
    with SpecSession(draft=drafter, n_threads=1, n_gpu_layers=0, n_seq=2) as session:
        streams = [session.stream("x", max_tokens=50, **ENDLESS) for _ in range(2)]
        reader = threading.Thread(target=lambda: list(streams[0]))
        reader.start()
        assert drafter.inside.wait(60)
        handle = session.submit("y", max_tokens=2)
        while queue_load(session).n_waiting:
            time.sleep(0.01)
        handle.cancel()
        drafter.may_go_on.set()
        with pytest.raises(ClosedError, match="cancelled before it had begun"):
            handle.result(30)
        reader.join(60)
        streams[1].close()


class Closing(Drafter):
    """Closes its session, once."""

    def __init__(self) -> None:
        self.session: SpecSession | None = None
        self.error: Exception | None = None

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        if self.session is not None:
            session, self.session = self.session, None
            try:
                session.close()
            except BusyError as error:
                self.error = error
        return []


def test_a_drafter_cannot_close_its_session_while_others_work() -> None:
    """Otherwise, its thread and the session's thread would wait for each other."""
    drafter = Closing()
    with SpecSession(draft=drafter, n_threads=1, n_gpu_layers=0, n_seq=2) as session:
        handle = session.submit(PROMPTS["module"], **LONG)
        next(iter(handle))
        stream = session.stream("x", max_tokens=20, **ENDLESS)
        drafter.session = session
        reader = threading.Thread(target=stream.run, daemon=True)
        reader.start()
        reader.join(60)
        assert not reader.is_alive()
        assert "may not close its own session" in str(drafter.error)
        assert len(handle.result(60).tokens) == LONG["max_tokens"]
