"""Sessions and streams used by several threads."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray
from processes import run_script
from prompts import PROMPTS
from session_options import Open
from specllama import BusyError, Drafter

PROMPT = PROMPTS["module"]


def test_a_call_waits_for_the_round_of_another_thread(open_session: Open) -> None:
    inside, may_go_on = threading.Event(), threading.Event()

    class Waiting(Drafter):
        def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
            inside.set()
            may_go_on.wait()
            return []

    expected = open_session(draft=None).generate(PROMPT, max_tokens=30).tokens
    session = open_session(draft=Waiting())
    results: list[list[int]] = []
    thread = threading.Thread(
        target=lambda: results.append(session.generate(PROMPT, max_tokens=30).tokens)
    )
    thread.start()
    inside.wait()
    assert session.tokenize("x")  # does not wait
    threading.Timer(0.1, may_go_on.set).start()
    with pytest.raises(BusyError, match="unfinished generation in another thread"):
        session.generate("x")
    thread.join()
    assert results == [expected]
    assert session.generate(PROMPT, max_tokens=30).tokens == expected


def test_a_stream_of_another_thread_is_not_replaced(open_session: Open) -> None:
    session = open_session()
    streams = []
    thread = threading.Thread(target=lambda: streams.append(session.stream(PROMPT)))
    thread.start()
    thread.join()
    with pytest.raises(BusyError, match="larger n_seq, or use submit"):  # the remedies
        session.generate("x")
    assert len([chunk.token for chunk in streams[0]]) == 256  # but any thread may read it
    assert session.generate("x", max_tokens=5).tokens


def test_a_dropped_stream_of_another_thread_has_ended(open_session: Open) -> None:
    session = open_session()
    expected = session.generate(PROMPT, max_tokens=5).tokens
    begun = []
    thread = threading.Thread(target=lambda: begun.append(next(session.stream(PROMPT)).token))
    thread.start()
    thread.join()
    gc.collect()
    assert begun == expected[:1]
    assert session.generate(PROMPT, max_tokens=5).tokens == expected  # not BusyError


def test_a_stream_can_be_closed_while_another_thread_works(open_session: Open) -> None:
    inside, may_go_on = threading.Event(), threading.Event()

    class Waiting(Drafter):
        def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
            inside.set()
            may_go_on.wait(60)
            return []

    session = open_session(draft=Waiting())
    stream = session.stream(PROMPT, max_tokens=30, stop="nothing")
    next(stream)
    stream.cancel()
    working = threading.Thread(target=lambda: session.generate(PROMPT, max_tokens=5))
    inside.clear()
    working.start()
    assert inside.wait(60)
    threading.Timer(0.05, may_go_on.set).start()
    stream.close()
    working.join()
    assert stream.result().text
    assert session.last is not None
    assert len(session.last.tokens) == 5


def test_a_refused_generation_does_not_disturb_the_running_one(open_session: Open) -> None:
    session = open_session()
    tokens = session.tokenize(PROMPT)
    expected = session.generate(tokens, max_tokens=400).tokens
    stream = session.stream(tokens, max_tokens=400)
    next(stream)
    refused = threading.Event()
    over = threading.Event()

    def intrude() -> None:
        while not over.is_set():
            with suppress(BusyError):
                session.generate(tokens, max_tokens=1)
                continue
            refused.set()

    thread = threading.Thread(target=intrude)
    thread.start()
    refused.wait()
    for _ in stream:
        pass
    over.set()
    thread.join()
    assert stream.result().tokens == expected


@pytest.mark.parametrize("failing", [False, True])
def test_a_running_generation_can_be_read_from_another_thread(
    open_session: Open, failing: bool
) -> None:
    class Failing(Drafter):
        def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
            raise RuntimeError(f"no idea after {len(tokens)} tokens")

    session = open_session(draft=Failing() if failing else "ngram")
    expected = session.generate(PROMPT, max_tokens=300).tokens
    over = threading.Event()
    seen: list[int] = []

    def watch() -> None:
        while not over.is_set():
            last = session.last
            assert last is not None
            assert last.tokens == expected[: len(last.tokens)]
            assert last.stats.generated_tokens <= len(expected)
            seen.append(len(last.tokens))

    threads = [threading.Thread(target=watch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert session.generate(PROMPT, max_tokens=300).tokens == expected
    over.set()
    for thread in threads:
        thread.join()
    assert len(set(seen)) > 5


def test_sessions_in_different_threads_are_independent(open_session: Open) -> None:
    expected = open_session().generate(PROMPT, max_tokens=100).tokens
    sessions = [open_session() for _ in range(3)]
    results: list[list[int]] = []
    threads = [
        threading.Thread(
            target=lambda s=session: results.append(s.generate(PROMPT, max_tokens=100).tokens)
        )
        for session in sessions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 3


@pytest.mark.parametrize(
    "call",
    [
        "list(session.stream('x', max_tokens=1000))",
        "session.generate('x', max_tokens=1000)",
        "session.beam_search('x', n_beams=4, max_tokens=100)",
    ],
)
def test_a_process_can_exit_while_a_daemon_thread_generates(call: str) -> None:
    script = f"""
import sys, threading, time
from specllama import SpecSession
session = SpecSession(n_threads=1, n_gpu_layers=0)
def work():
    while True:
        {call}
        begun.set()
begun = threading.Event()
threading.excepthook = lambda raised: print(raised.exc_type.__name__)
threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.02)
"""
    assert run_script(script) == (0, "ClosedError\n", "")
