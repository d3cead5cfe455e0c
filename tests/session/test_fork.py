"""A forked process has a session's memory but not its threads, so calls raise an error."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from processes import run_script
from prompts import ENDLESS, PROMPTS
from session_options import Open
from specllama import ClosedError, Drafter, Handle, SpecSession, Stream

# Later versions of Python warn of every fork next to threads, which is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

SECONDS = 60
REFUSED = "ClosedError: The session belongs to the parent process"


def in_child(call: Callable[[], object]) -> str:
    """Return the result of a call, or its exception, in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"gave {call()}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + SECONDS
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.005)
    assert ended[1] == 0
    with open(reading, "rb") as file:
        return file.read().decode()


class Slow(Drafter):
    """Keeps the thread inside the session busy most of the time."""

    def propose(self, *_: Any) -> list[int]:
        time.sleep(0.05)
        return []


@pytest.fixture(params=[1, 2], ids=lambda n: f"n_seq={n}")
def at_work(open_session: Open, request: pytest.FixtureRequest) -> Iterator[Any]:
    session = open_session(draft=Slow(), n_seq=request.param)
    handle = session.submit(PROMPTS["module"], max_tokens=600, **ENDLESS)
    next(iter(handle))
    yield session, handle
    # The forked process has changed nothing in this one.
    handle.cancel()
    assert handle.result(SECONDS).tokens
    assert len(session.submit("x", max_tokens=2).result(SECONDS).tokens) == 2


def test_a_working_session_is_refused_in_a_forked_process(
    at_work: tuple[SpecSession, Handle],
) -> None:
    session, handle = at_work

    async def chunks() -> object:
        return await handle.next_chunks()

    async def whole() -> object:
        return await handle

    calls: list[Callable[[], object]] = [
        lambda: session.generate("x", max_tokens=2),
        lambda: session.generate(["x", "y"], max_tokens=2),
        lambda: session.beam_search("x", max_tokens=2, n_beams=2),
        lambda: session.stream("x", max_tokens=2),
        lambda: session.submit("x", max_tokens=2),
        lambda: asyncio.run(session.agenerate("x", max_tokens=2)),
        lambda: session.save_state("/nowhere/state"),
        lambda: session.tokenize("x"),
        lambda: session.n_ctx,
        handle.result,
        handle.so_far,
        lambda: list(handle),
        lambda: asyncio.run(chunks()),
        lambda: asyncio.run(whole()),
    ]
    for call in calls:
        assert in_child(call).startswith(REFUSED)
    assert in_child(lambda: repr(session)) == "gave <SpecSession, closed>"
    for end in (session.close, handle.cancel):
        assert in_child(end) == "gave None"


def test_a_streaming_session_is_refused_in_a_forked_process(open_session: Open) -> None:
    """The forked process also lacks OpenMP's threads."""
    session = open_session(n_threads=2)
    stream = session.stream(PROMPTS["module"], max_tokens=30)
    next(stream)
    calls: list[Callable[[Stream], object]] = [next, Stream.run, Stream.result]
    for call in calls:
        assert in_child(lambda call=call: call(stream)).startswith(REFUSED)  # type: ignore[misc]
    assert in_child(lambda: session.last).startswith(REFUSED)
    for end in (stream.close, session.close):
        assert in_child(end) == "gave None"
    assert len(stream.run().tokens) == 30


def test_a_forked_process_can_exit() -> None:
    script = (
        "import os\nfrom specllama import SpecSession\n"
        "session = SpecSession(n_threads=2, n_gpu_layers=0)\n"
        "handle = session.submit('x', max_tokens=1000)\n"
        "next(iter(handle))\n"
        "child = os.fork()\n"
        "print(os.waitpid(child, 0)[1] if child else 'bye', flush=True)\n"
    )
    assert run_script(script) == (0, "bye\n0\n", "")


def test_a_session_can_be_dropped_in_a_forked_process() -> None:
    held = [SpecSession(n_threads=2, n_gpu_layers=0)]
    streams = [held[0].stream(PROMPTS["module"])]
    next(streams[0])

    def drop() -> int:
        streams.clear()
        held.clear()
        return gc.collect() * 0

    assert in_child(drop) == "gave 0"
    streams[0].close()
    held[0].close()


def test_dropping_in_a_forked_process_does_not_call_the_drafter() -> None:
    ended: list[int] = []

    class Told(Drafter):
        def propose(self, *_: Any) -> list[int]:
            return []

        def end(self, sequence: int) -> None:
            ended.append(sequence)

    held = [SpecSession(draft=Told(), n_threads=2, n_gpu_layers=0)]
    streams = [held[0].stream(PROMPTS["module"])]
    next(streams[0])

    def drop() -> list[int]:
        streams.clear()
        held.clear()
        gc.collect()
        return ended

    assert in_child(drop) == "gave []"
    streams[0].close()
    assert len(ended) == 1
    held[0].close()


def test_a_forked_process_can_open_its_own_session(open_session: Open) -> None:
    expected = open_session().generate("x", max_tokens=5).tokens
    found = in_child(lambda: open_session().generate("x", max_tokens=5).tokens)
    assert found == f"gave {expected}"


def test_a_forked_process_can_open_its_own_session_with_threads(open_session: Open) -> None:
    """The forked process does not wait for this process's OpenMP threads."""
    expected = open_session(n_threads=2).generate("x", max_tokens=5).tokens
    found = in_child(lambda: open_session(n_threads=2).generate("x", max_tokens=5).tokens)
    assert found == f"gave {expected}"
    assert open_session(n_threads=2).generate("x", max_tokens=5).tokens == expected


def test_a_closed_session_stays_closed_in_a_forked_process(open_session: Open) -> None:
    session = open_session()
    session.close()
    with pytest.raises(ClosedError, match="open a new one"):
        session.generate("x")
    assert in_child(lambda: session.generate("x")).startswith(REFUSED)
