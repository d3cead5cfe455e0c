"""Generations with a served target that end early, or overlap with others of their session."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from specllama import BusyError, ClosedError, Drafter, SpecSession
from specllama._core import VerifyAnswer
from specllama.remote.fields import Fields
from specllama.remote.verification import Verification
from targets import MODULE, Connect, same

N = 40


def test_an_abandoned_or_replaced_stream_keeps_its_tokens(
    connect: Connect, local: SpecSession
) -> None:
    session = connect("ngram")
    with session.stream(MODULE, max_tokens=200) as stream:
        first = [next(stream) for _ in range(3)]
    expected = local.generate(MODULE, max_tokens=200)
    assert [chunk.token for chunk in first] == expected.tokens[:3]
    left = stream.result()
    assert left.finish_reason is None
    assert left.tokens == expected.tokens[: len(left.tokens)]
    stream = session.stream(MODULE, max_tokens=200)
    next(stream)
    same(session.generate(MODULE, max_tokens=9), local.generate(MODULE, max_tokens=9))
    with pytest.raises(ClosedError, match="began another generation"):
        list(stream)
    stream = session.stream(MODULE, max_tokens=200)
    next(stream)
    with pytest.raises(BusyError, match="unfinished generation in another thread"):
        session.submit("x", max_tokens=2).result(60)
    stream.close()
    assert session.submit("x", max_tokens=2).result(60).finish_reason == "length"


class Interrupting(Drafter):
    def __init__(self) -> None:
        self.n_asked = 0

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.n_asked += 1
        if self.n_asked == 4:
            raise KeyboardInterrupt
        return [5]


def until_interrupted(session: SpecSession, **options: Any) -> None:
    while True:
        session.generate(MODULE, max_tokens=N, **options)


def test_a_generation_after_ctrl_c_gives_the_same_tokens(
    connect: Connect, local: SpecSession
) -> None:
    session = connect(Interrupting())
    with pytest.raises(KeyboardInterrupt):
        until_interrupted(session)
    expected = local.generate(MODULE, max_tokens=N)
    assert session.last is not None
    assert session.last.tokens == expected.tokens[: len(session.last.tokens)]
    same(session.generate(MODULE, max_tokens=N), expected)


def test_an_interrupted_text_includes_text_held_back_for_stop_strings(
    connect: Connect, local: SpecSession
) -> None:
    text = local.generate(MODULE, max_tokens=N).text
    session = connect(Interrupting())
    with pytest.raises(KeyboardInterrupt):
        until_interrupted(session, stop=text[:60] + "\N{ROCKET}")
    assert session.last is not None
    assert session.last.text == local.detokenize(session.last.tokens)
    assert session.last.text


class Selfish(Drafter):
    """Calls its own session."""

    def __init__(self) -> None:
        self.session: SpecSession | None = None
        self.errors: list[str] = []

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        assert self.session is not None
        for call in (self.session.generate, lambda text: self.session.submit(text).result()):
            try:
                call("x")
            except BusyError as error:
                self.errors.append(str(error))
        return []


@pytest.mark.parametrize("n_seq", [1, 2])
def test_a_drafter_cannot_wait_for_its_own_session(
    connect: Connect, local: SpecSession, n_seq: int
) -> None:
    drafter = Selfish()
    drafter.session = session = connect(drafter, n_seq=n_seq, max_queue=500)
    found = session.generate([MODULE], max_tokens=4)[0]
    drafter.session = None
    same(found, local.generate(MODULE, max_tokens=4))
    assert len(drafter.errors) >= 4
    session.close()


class Leaving(Drafter):
    """Calls its own session when a text ends."""

    def __init__(self) -> None:
        self.session: SpecSession | None = None

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return []

    def end(self, sequence: int) -> None:
        if self.session is not None:
            self.session.generate("x", max_tokens=1)


@pytest.mark.parametrize("n_seq", [1, 2])
def test_a_drafter_cannot_wait_for_its_session_in_end(connect: Connect, n_seq: int) -> None:
    drafter = Leaving()
    session = connect(drafter, n_seq=n_seq)
    stream = session.stream(MODULE, max_tokens=20)
    next(stream)
    drafter.session = session
    closing = threading.Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    drafter.session = None
    assert session.generate(MODULE, max_tokens=3).tokens


class Lingering(Drafter):
    """Blocks when a text ends."""

    def __init__(self) -> None:
        self.inside, self.may_go_on = threading.Event(), threading.Event()

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return []

    def end(self, sequence: int) -> None:
        self.inside.set()
        self.may_go_on.wait(60)


def test_a_call_during_the_end_of_a_stream_is_not_refused(connect: Connect) -> None:
    drafter = Lingering()
    session = connect(drafter)
    stream = session.stream(MODULE, max_tokens=200)
    next(stream)
    ending = threading.Thread(target=stream.cancel)
    ending.start()
    assert drafter.inside.wait(60)
    threading.Timer(0.05, drafter.may_go_on.set).start()
    assert len(session.generate(MODULE, max_tokens=3).tokens) == 3
    ending.join()


def test_ctrl_c_at_the_end_of_a_text_leaves_the_session_usable(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connect("ngram")

    def interrupted(self: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Verification, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.generate(MODULE, max_tokens=3)
    # The server itself would wait for a minute.
    assert len(session.submit("x", max_tokens=3).result(30).tokens) == 3


def test_a_slow_prompt_does_not_delay_other_requests(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connect("ngram", n_seq=2)
    inside, may_go_on = threading.Event(), threading.Event()
    whole = Verification.round

    def slow(self: Verification, *given: Any) -> VerifyAnswer:
        if not inside.is_set():
            inside.set()
            may_go_on.wait(60)
        return whole(self, *given)

    monkeypatch.setattr(Verification, "round", slow)
    first = session.submit(MODULE, max_tokens=3)
    assert inside.wait(60)
    assert len(session.submit("x", max_tokens=3).result(30).tokens) == 3
    assert not first.done()
    may_go_on.set()
    assert len(first.result(60).tokens) == 3


@pytest.mark.parametrize("answer", ["", "x", "[]", "5", "[" * 100_000, b"\xff"])
def test_bytes_that_are_not_an_answer_are_ignored(answer: str | bytes) -> None:
    """A proxy may send anything."""
    assert Fields.parse("", answer) is None
