"""Callbacks and drafters that wait for their own session, and the exceptions they raise."""

from __future__ import annotations

import asyncio
import queue
import threading

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import LONG, PROMPTS
from session_options import Open
from specllama import (
    ArgumentError,
    BusyError,
    Drafter,
    Handle,
    SpecSession,
)


def test_done_callbacks_are_called_and_cannot_wait(open_session: Open) -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    session = open_session()

    def callback(ended: Handle) -> None:
        said.put(ended.result().text)
        with pytest.raises(BusyError, match="may not wait for its own session"):
            session.submit("x", max_tokens=2).result()
        said.put("called")

    handle = session.submit("x", max_tokens=2)
    handle.add_done_callback(callback)
    assert said.get(timeout=60) == handle.result().text
    assert said.get(timeout=60) == "called"


def waits(session: SpecSession) -> list[BaseException]:
    """Return the exceptions of all asyncio ways to wait for a session."""

    async def handle() -> None:
        await session.submit("x", max_tokens=0)

    async def chunks() -> None:
        await session.submit("x", max_tokens=0).next_chunks()

    async def stream() -> None:
        async for _ in session.astream("x", max_tokens=0):
            pass

    async def whole() -> None:
        await session.agenerate("x", max_tokens=0)

    async def chat() -> None:
        await session.achat([{"role": "user", "content": "x"}])

    raised: list[BaseException] = []
    for way in (handle, chunks, stream, whole, chat):
        try:
            asyncio.run(way())
        except BaseException as error:
            raised.append(error)
    return raised


def test_a_callback_cannot_wait_with_asyncio(open_session: Open) -> None:
    session = open_session(max_queue=100)
    raised: queue.SimpleQueue[list[BaseException]] = queue.SimpleQueue()
    handle = session.submit("x", max_tokens=2)
    handle.add_done_callback(lambda _: raised.put(waits(session)))
    assert [type(one) for one in raised.get(timeout=60)] == [BusyError] * 5


@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit, KeyboardInterrupt])
def test_exceptions_of_done_callbacks_are_logged(
    open_session: Open, caplog: pytest.LogCaptureFixture, n_seq: int, error: type[BaseException]
) -> None:
    session = open_session()
    running = [session.submit(f"{i} {PROMPTS['module']}", **LONG) for i in range(n_seq)]
    handle = session.submit("x", max_tokens=2)  # waits for a slot
    called = threading.Event()

    def callback(_: Handle) -> None:
        raise error

    handle.add_done_callback(callback)
    handle.add_done_callback(lambda _: called.set())
    for one in running:
        one.cancel()
    assert len(handle.result(60).tokens) == 2
    assert called.wait(60)
    assert [one.getMessage() for one in caplog.records] == ["A done-callback raised."]
    assert len(session.submit("x", max_tokens=2).result(60).tokens) == 2
    with pytest.raises(ArgumentError, match="callback must be a function, not 5"):
        handle.add_done_callback(5)  # type: ignore[arg-type]


class Raising(Drafter):
    """Raises an error in one of its methods, once."""

    def __init__(self, error: type[BaseException], where: str) -> None:
        self.error = error
        self.where = where

    def reached(self, where: str) -> None:
        if where == self.where:
            self.where = ""
            raise self.error

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.reached("begin")

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.reached("propose")
        return []

    def end(self, sequence: int) -> None:
        self.reached("end")


@pytest.mark.parametrize("where", ["begin", "propose", "end"])
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_system_exit_in_a_drafter_ends_the_round_but_not_the_session(
    open_session: Open, error: type[BaseException], where: str
) -> None:
    session = open_session(draft=Raising(error, where))
    handle = session.submit("x", max_tokens=5)
    with pytest.raises(error):
        handle.result(60)
    with pytest.raises(error):
        list(handle)
    found = handle.so_far()
    assert (found is None) == (where == "begin")
    again = session.submit("x", max_tokens=5).result(60)
    assert len(again.tokens) == 5
    if found is not None:
        assert found.tokens == again.tokens[: len(found.tokens)]


def test_system_exit_in_end_of_a_cancelled_request_is_raised(open_session: Open) -> None:
    session = open_session(draft=Raising(SystemExit, "end"))
    handle = session.submit(PROMPTS["module"], **LONG)
    next(iter(handle))
    handle.cancel()
    with pytest.raises(SystemExit):
        handle.result(60)
    assert len(session.submit("x", max_tokens=5).result(60).tokens) == 5


class Waiting(Drafter):
    """Sends a request to its own session and waits for the answer."""

    def __init__(self) -> None:
        self.session: SpecSession | None = None

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        assert self.session is not None
        self.session.submit("x", max_tokens=0).result()
        return []


def test_a_drafter_cannot_wait_for_its_session(open_session: Open) -> None:
    drafter = Waiting()
    drafter.session = session = open_session(draft=drafter, max_queue=100)
    for stats in (
        session.submit("x", max_tokens=3).result().stats,
        session.generate("x", max_tokens=3).stats,
    ):
        assert "may not wait for its own session" in stats.last_drafter_error


class WaitingByAsyncio(Waiting):
    """Waits with asyncio, as soon as a request begins."""

    raised: tuple[BaseException, ...] = ()

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        assert self.session is not None
        self.raised = (*self.raised, *waits(self.session))

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return []


def test_a_drafter_cannot_wait_for_its_session_with_asyncio(open_session: Open) -> None:
    drafter = WaitingByAsyncio()
    drafter.session = session = open_session(draft=drafter, max_queue=100)
    session.generate("x", max_tokens=3)
    assert {type(one) for one in drafter.raised} == {BusyError}
    assert len(drafter.raised) % 5 == 0
