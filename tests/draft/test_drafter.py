"""Drafters written in Python: the calls they receive, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import PROMPTS
from session_options import Open
from specllama import ArgumentError, Drafter, MatchFinder, NGramPredictor, SpecSession

PROMPT = PROMPTS["module"]


class Recorder(Drafter):
    """Records every call; proposes what a function returns for the tokens."""

    def __init__(self, rule: Callable[[NDArray[np.int32], int], Any]) -> None:
        self.rule = rule
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.calls.append(("begin", sequence, prompt.tolist()))

    def propose(
        self, sequence: int, tokens: NDArray[np.int32], max_tokens: int
    ) -> Iterable[int] | None:
        assert tokens.dtype == np.int32
        self.calls.append(("propose", sequence, tokens.tolist(), max_tokens))
        answer: Iterable[int] | None = self.rule(tokens, max_tokens)
        return answer

    def observe(
        self, sequence: int, draft: NDArray[np.int32], n_accepted: int, next_token: int
    ) -> None:
        self.calls.append(("observe", sequence, draft.tolist(), n_accepted, next_token))

    def end(self, sequence: int) -> None:
        self.calls.append(("end", sequence))


def test_a_drafter_is_called_for_begin_every_round_and_end(open_session: Open) -> None:
    expected = open_session(draft=None).generate(PROMPT, max_tokens=40).tokens
    recorder = Recorder(lambda tokens, n: [tokens[-1]] * n)
    session = open_session(draft=recorder, spec_length=3)
    prompt = session.tokenize(PROMPT)
    generation = session.generate(prompt, max_tokens=40)
    assert generation.tokens == expected

    assert recorder.calls[0] == ("begin", 0, prompt)
    assert recorder.calls[-1] == ("end", 0)
    # The observed tokens add up to the generated ones. The drafter is not called for the first
    # token.
    known = [*prompt, expected[0]]
    for call in recorder.calls[1:-1]:
        if call[0] == "propose":
            assert call[2] == known
            assert 1 <= call[3] <= 3
            last = known[-1]
        else:
            _, _, draft, n_accepted, next_token = call
            assert set(draft) == {last}
            known += [*draft[:n_accepted], next_token]
    assert known[len(prompt) :] == expected[: len(known) - len(prompt)]
    assert len(known) - len(prompt) >= len(expected) - 4


def test_none_and_empty_proposals_give_plain_rounds(open_session: Open) -> None:
    for answer in (None, [], ()):
        session = open_session(draft=Recorder(lambda tokens, n, answer=answer: answer))
        stats = session.generate(PROMPT, max_tokens=10).stats
        assert stats.drafted == 0
        assert stats.drafter_errors == 0
        assert stats.by_round == [(0, 0)] * 10


def test_numpy_arrays_are_accepted_as_drafts(open_session: Open) -> None:
    recorder = Recorder(lambda tokens, n: np.zeros(n, np.int64))
    stats = open_session(draft=recorder).generate(PROMPT, max_tokens=10).stats
    assert stats.drafted > 0
    assert stats.drafter_errors == 0


def test_predictions_pass_their_confidence_to_the_trace(open_session: Open) -> None:
    finder, predictor = MatchFinder(), NGramPredictor()
    text = [5, 6, 7, 8, 9, 10, 11] * 2
    finder.append_batch(text)
    predictor.update_batch(text)
    for predictions, known in (
        (finder.predict(4), [("match", length, 1) for length in (7, 8, 9, 10)]),
        (predictor.predict(2), [("ngram", 4, pytest.approx(1 / 2))] * 2),
    ):
        recorder = Recorder(lambda tokens, n, draft=predictions: draft[:n])
        generation = open_session(draft=recorder).generate(PROMPT, max_tokens=10, trace=True)
        assert generation.trace is not None
        draft = generation.trace.rounds[1].draft  # the first round ends the prompt
        assert [one.token for one in draft] == [one.token for one in predictions]
        assert [(one.drafter, one.length, one.confidence) for one in draft] == known
        assert generation.stats.drafter_errors == 0


def endless() -> Iterable[int]:
    while True:
        yield 1


def boom(*_: Any) -> Any:
    raise RuntimeError("boom")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("this exception cannot be shown")


def surrogate(*_: Any) -> Any:
    raise ValueError("\ud800")


def unspeakable(*_: Any) -> Any:
    raise UnspeakableError


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (boom, "RuntimeError: boom"),
        (surrogate, "ValueError: \\ud800"),
        (unspeakable, "UnspeakableError"),
        (lambda tokens, n: [4096], "token 4096; the model has 4096 tokens"),
        (lambda tokens, n: [1, -1], "token -1"),
        (lambda tokens, n: [2**70], "OverflowError"),
        (lambda tokens, n: [2**40], "not a token id"),
        (lambda tokens, n: [1] * (n + 1), "at most"),
        (lambda tokens, n: endless(), "at most"),
        (lambda tokens, n: ["a"], "TypeError"),
        (lambda tokens, n: [1.5], "TypeError"),
        (lambda tokens, n: 5, "TypeError"),
        (lambda tokens, n: "ab", "TypeError"),
    ],
)
def test_errors_in_propose_are_recorded_and_change_no_token(
    open_session: Open, rule: Callable[..., Any], message: str
) -> None:
    expected = open_session(draft=None).generate(PROMPT, max_tokens=20).tokens
    session = open_session(draft=Recorder(rule))
    generation = session.generate(PROMPT, max_tokens=20)
    assert generation.tokens == expected
    assert generation.stats.drafter_errors > 0
    assert generation.stats.drafted == 0
    assert message in generation.stats.last_drafter_error


@pytest.mark.parametrize("method", ["begin", "observe", "end"])
def test_errors_in_begin_observe_and_end_are_recorded(
    open_session: Open, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = open_session(draft=None).generate(PROMPT, max_tokens=20).tokens
    recorder = Recorder(lambda tokens, n: [1] * n)
    monkeypatch.setattr(recorder, method, boom)
    generation = open_session(draft=recorder).generate(PROMPT, max_tokens=20)
    assert generation.tokens == expected
    assert generation.stats.drafter_errors > 0


@pytest.mark.parametrize("call", ["generate", "close", "stream"])
def test_a_drafter_cannot_call_its_session(open_session: Open, call: str) -> None:
    sessions: list[SpecSession] = []

    def rule(tokens: NDArray[np.int32], n: int) -> list[int]:
        getattr(sessions[0], call)(*([] if call == "close" else ["x"]))
        return [1]

    expected = open_session(draft=None).generate(PROMPT, max_tokens=20).tokens
    sessions.append(open_session(draft=Recorder(rule)))
    generation = sessions[0].generate(PROMPT, max_tokens=20)
    assert generation.tokens == expected
    assert "BusyError" in generation.stats.last_drafter_error


def test_ctrl_c_inside_a_drafter_raises_keyboard_interrupt(open_session: Open) -> None:
    n_calls = 0

    def rule(tokens: NDArray[np.int32], n: int) -> list[int]:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 5:
            raise KeyboardInterrupt
        return [1]

    expected = open_session(draft=None).generate(PROMPT, max_tokens=20).tokens
    session = open_session(draft=Recorder(rule))
    with pytest.raises(KeyboardInterrupt):
        session.generate(PROMPT, max_tokens=20)
    assert session.last is not None
    assert session.last.tokens == expected[: len(session.last.tokens)] != []
    assert session.generate(PROMPT, max_tokens=20).tokens == expected


@pytest.mark.parametrize("draft", [5, Drafter, object(), np.zeros(3)])
def test_objects_that_are_not_drafters_are_refused(open_session: Open, draft: object) -> None:
    with pytest.raises(ArgumentError, match="draft must be"):
        open_session(draft=draft)
