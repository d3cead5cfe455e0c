"""A new request waits for the end of a cancelled one instead of being refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from processes import run_script
from prompts import ENDLESS, PROMPTS
from session_options import Open
from specllama import SpecSession

PROMPT = PROMPTS["module"]
TIMES = 40


@pytest.fixture
def session(open_session: Open) -> Iterator[SpecSession]:
    with open_session() as session:
        yield session


def cancel_a_handle(session: SpecSession) -> None:
    handle = session.submit(PROMPT, max_tokens=600, **ENDLESS)
    next(iter(handle))
    handle.cancel()


def cancel_before_it_begins(session: SpecSession) -> None:
    session.submit(PROMPT, max_tokens=600, **ENDLESS).cancel()


def leave_a_loop(session: SpecSession) -> None:
    async def leave() -> None:
        async for _ in session.astream(PROMPT, max_tokens=600, **ENDLESS):
            break

    asyncio.run(leave())


def cancel_what_another_thread_reads(session: SpecSession) -> None:
    stream = session.stream(PROMPT, max_tokens=600, **ENDLESS)
    next(stream)
    reader = threading.Thread(target=list, args=[stream])
    reader.start()
    stream.cancel()


@pytest.mark.parametrize(
    "cancel",
    [
        cancel_a_handle,
        cancel_before_it_begins,
        leave_a_loop,
        cancel_what_another_thread_reads,
    ],
)
def test_a_call_waits_for_the_end_of_a_cancelled_request(
    session: SpecSession, cancel: Callable[[SpecSession], None]
) -> None:
    expected = session.generate(PROMPT, max_tokens=3).tokens
    for _ in range(TIMES):
        cancel(session)
        assert session.generate(PROMPT, max_tokens=3).tokens == expected


def test_a_call_in_a_coroutine_waits_for_the_end_of_a_cancelled_request(
    session: SpecSession,
) -> None:
    expected = session.generate(PROMPT, max_tokens=3).tokens

    async def leave_and_generate() -> None:
        for _ in range(TIMES):
            async for _ in session.astream(PROMPT, max_tokens=600, **ENDLESS):
                break
            assert session.generate(PROMPT, max_tokens=3).tokens == expected

    asyncio.run(leave_and_generate())


def test_a_beam_search_waits_for_the_end_of_a_cancelled_request(session: SpecSession) -> None:
    for _ in range(TIMES):
        cancel_a_handle(session)
        assert len(session.beam_search(PROMPT, n_beams=2, max_tokens=3)) == 2


def test_generating_threads_get_closed_error_when_the_session_closes() -> None:
    script = """
import threading
from specllama import SpecSession
raised = []
for _ in range(40):
    session = SpecSession(n_threads=1, n_gpu_layers=0, draft=None)
    begun = threading.Event()
    def work():
        try:
            while True:
                session.generate("x", max_tokens=1)
                begun.set()
        except Exception as error:
            raised.append(type(error).__name__)
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    session.close()
    thread.join()
print(*sorted(set(raised)))
"""
    assert run_script(script) == (0, "ClosedError\n", "")
