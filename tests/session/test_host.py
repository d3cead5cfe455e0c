"""Requests for which somebody outside drafts: offers, paced rounds, texts that go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from prompts import PROMPTS
from rounds import rounds_of
from session_options import EXACT_HERE
from specllama import ArgumentError, ClosedError, SpecSession
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]
MODULE = PROMPTS["module"]
N = 24


@pytest.fixture
def session(open_session: Open) -> SpecSession:
    return open_session(draft=None, offers=True, exact=EXACT_HERE, spec_length=16)


def paced(
    session: SpecSession, draft: Callable[[int, list[int]], list[int]], **options: Any
) -> Any:
    """Return the rounds of a paced generation, each verifying draft(n_round, tokens so far)."""
    handle = session.host(MODULE, paced=True, **({"max_tokens": N} | options))
    n_prompt = len(session.tokenize(MODULE))
    (first,) = rounds_of(handle)
    rounds, tokens = [first], list(first.tokens)
    while not rounds[-1].done:
        handle.offer(n_prompt + len(tokens), draft(len(rounds), tokens))
        (news,) = rounds_of(handle)
        rounds.append(news)
        tokens += news.tokens
        del tokens[news.n_generated :]
    return handle.result(), rounds


def test_right_drafts_are_accepted_and_counted(session: SpecSession) -> None:
    expected = session.generate(MODULE, max_tokens=N)
    found, rounds = paced(session, lambda _, tokens: expected.tokens[len(tokens) :][:4])
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert found.finish_reason == "length"
    assert [one.accepted for one in rounds[1:-1]] == [4] * (len(rounds) - 2)
    assert sum(one.drafted for one in rounds) == found.stats.drafted
    assert "".join(chunk.text for one in rounds for chunk in one.chunks) == expected.text
    assert all(one.seconds > 0 for one in rounds)


def test_nothing_is_expected_of_rounds_that_are_planned_outside(open_session: Open) -> None:
    session = open_session(draft=None, offers=True, exact=EXACT_HERE, spec_length="auto")
    expected = session.generate(MODULE, max_tokens=N, trace=True)
    assert expected.trace is not None
    assert all(one.expected_tokens > 0 for one in expected.trace.rounds)
    found, rounds = paced(session, lambda _, tokens: expected.tokens[len(tokens) :][:4], trace=True)
    assert found.tokens == expected.tokens
    assert len(found.trace.rounds) == len(rounds)
    for one in found.trace.rounds:
        assert (one.expected_tokens, one.expected_seconds) == (0, 0)


def test_a_draft_may_begin_before_the_end_of_the_text(session: SpecSession) -> None:
    expected = session.generate(MODULE, max_tokens=N).tokens
    n_prompt = len(session.tokenize(MODULE))
    handle = session.host(MODULE, paced=True, max_tokens=N)
    n = rounds_of(handle)[0].n_generated
    handle.offer(n_prompt, expected[:6])  # the first of it is known by now
    (news,) = rounds_of(handle)
    assert (news.drafted, news.accepted) == (6 - n, 6 - n)
    handle.offer(n_prompt + 40, [1, 2, 3])  # nothing of it can be used
    (news,) = rounds_of(handle)
    assert (news.drafted, len(news.tokens)) == (0, 1)
    handle.offer(n_prompt + 1, [0, *expected[2:]])  # another way
    (news,) = rounds_of(handle)
    assert (news.drafted, len(news.tokens)) == (0, 1)
    handle.cancel()
    assert handle.result().tokens == expected[: news.n_generated]


@pytest.mark.parametrize("kind", ["wrong", "too long", "empty", "stale", "whole prompt"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_no_draft_changes_a_token(session: SpecSession, kind: str, temperature: float) -> None:
    options: dict[str, Any] = {"temperature": temperature, "seed": 1}
    expected = session.generate(MODULE, max_tokens=N, **options)
    prompt = [int(token) for token in session.tokenize(MODULE)]

    def draft(n_round: int, tokens: list[int]) -> list[int]:
        coming = expected.tokens[len(tokens) :]
        return {
            "wrong": [*coming[: n_round % 3], 3, 3, 3],
            "too long": [*coming[:2], *range(3, 303)],
            "empty": [],
            "stale": tokens[-3:],
            "whole prompt": prompt,
        }[kind]

    found, rounds = paced(session, draft, **options)
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert all(one.drafted <= 16 for one in rounds)
    assert len(rounds) == N or kind != "empty"


def test_a_generation_that_is_not_paced_goes_on_by_itself(session: SpecSession) -> None:
    expected = session.generate(MODULE, max_tokens=N)
    handle = session.host(MODULE, max_tokens=N)
    assert handle.result(60).tokens == expected.tokens
    told = []
    while news := rounds_of(handle):
        told += news
    assert [token for one in told for token in one.tokens] == expected.tokens
    assert told[-1].done
    assert told[-1].n_generated == N


def test_offers_to_one_that_is_not_paced(open_session: Open) -> None:
    """They stand beside its own drafters' for as long as the text takes their way."""
    session = open_session(offers=True, exact=EXACT_HERE)
    options: dict[str, Any] = {"max_tokens": 200, "temperature": 1.0, "seed": 3}
    expected = session.generate(MODULE, **options).tokens
    n_prompt = len(session.tokenize(MODULE))
    handle = session.host(MODULE, **options)
    drafted, done = 0, False
    while not done:
        for one in rounds_of(handle):
            done = one.done
            drafted += one.drafted
            handle.offer(n_prompt, expected[: one.n_generated + 20], [0.9] * (one.n_generated + 20))
    assert handle.result().tokens == expected
    assert drafted > 0


GRAMMAR = 'root ::= ("yes" | "no" | " maybe")+'
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.0, "seed": 7},
    "top": {"temperature": 1.3, "seed": 2**63 + 1, "top_k": 20, "top_p": 0.9, "min_p": 0.01},
    "penalties": {
        "temperature": 0.7, "seed": 1, "repeat_penalty": 1.3, "frequency_penalty": 0.5,
        "presence_penalty": 0.4, "penalty_last_n": 8,
    },
    "creative": {"temperature": 1.0, "seed": 2, "dry_multiplier": 2.0, "xtc_probability": 0.5},
    "grammar": {"temperature": 1.0, "seed": 4, "grammar": GRAMMAR},
    "stop": {"stop": ["self.size", "offset)\n"], "max_tokens": 80},
    "logprobs": {"temperature": 1.0, "seed": 9, "logprobs": 2},
}  # fmt: skip


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_broken_generation_goes_on(session: SpecSession, options: dict[str, Any]) -> None:
    options = {"max_tokens": N} | options
    expected = session.generate(MODULE, **options)
    for n in {0, 1, 5, len(expected.tokens) - 1}:
        found = session.host(MODULE, generated=expected.tokens[:n], **options).result(60)
        assert (found.tokens, found.text) == (expected.tokens, expected.text)
        assert found.finish_reason == expected.finish_reason
        assert found.stats.generated_tokens == len(expected.tokens)
        ours, whole = found.logprobs, expected.logprobs[n:]  # of what was given, nobody knows them
        assert [(one.token, one.logprob) for one in ours] == [
            (one.token, one.logprob) for one in whole
        ]


def test_what_was_generated_may_be_all(session: SpecSession) -> None:
    expected = session.generate(MODULE, max_tokens=N)
    found = session.host(MODULE, generated=expected.tokens, max_tokens=N).result(60)
    assert (found.tokens, found.finish_reason) == (expected.tokens, "length")
    with pytest.raises(ArgumentError, match=r"has 24 tokens, more than the 23"):
        session.host(MODULE, generated=expected.tokens, max_tokens=N - 1)
    with pytest.raises(ArgumentError, match="more than"):
        session.host(MODULE, generated=[5] * 5000)


def test_what_cannot_have_been_generated_is_refused(session: SpecSession) -> None:
    yes, class_ = (int(session.tokenize(one, add_special=False)[0]) for one in ("yes", "class"))
    cases: list[tuple[list[int], dict[str, Any]]] = [
        ([class_], {"grammar": GRAMMAR}),
        ([*session.tokenize("yesno", add_special=False), class_], {"grammar": GRAMMAR}),
        ([session.core.eos], {}),
        ([yes, session.core.eos], {"grammar": GRAMMAR}),
        ([yes, yes], {"stop": session.token_text(yes)}),
        ([0], {"grammar": GRAMMAR}),
    ]
    for generated, options in cases:
        handle = session.host(MODULE, generated=generated, max_tokens=N, **options)
        with pytest.raises(ArgumentError, match="cannot have been generated"):
            handle.result(60)
    for wrong in ([-1], [session.n_vocab]):
        with pytest.raises(ArgumentError, match="in the generated text is out of range"):
            session.host(MODULE, generated=wrong)
    for wrong in ("text", 5, [1.5]):
        with pytest.raises(ArgumentError, match="generated"):
            session.host(MODULE, generated=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec_tree", ["off", 2])
def test_branches_of_who_does_not_wait(open_session: Open, spec_tree: Any) -> None:
    """The text may leave an offer's trunk and go on along a branch, whatever the memory holds."""
    session = open_session(draft=None, offers=True, exact=EXACT_HERE, spec_tree=spec_tree)
    options: dict[str, Any] = {"max_tokens": 200, "temperature": 1.0, "seed": 3}
    expected = session.generate(MODULE, **options).tokens
    n_prompt = len(session.tokenize(MODULE))
    used = 0
    for _ in range(20):  # offers may come too late, all of them on a busy machine
        handle = session.host(MODULE, **options)
        done = False
        while not done:
            for one in rounds_of(handle):
                done = one.done
                used += one.used
                n = one.n_generated
                handle.offer(n_prompt, [*expected[:n], 3, 3], [], [(n, expected[n : n + 20])])
        assert handle.result().tokens == expected
        if used > 0:
            break
    assert used > 0


def test_what_is_no_draft_is_refused(session: SpecSession) -> None:
    handle = session.host(MODULE, paced=True, max_tokens=N)
    rounds_of(handle)
    for n_before, tokens, confidence in (
        (0, [session.n_vocab], []),
        (0, [-1], []),
        (-1, [5], []),
        (2**40, [5], []),
        (0, [5], [1.5]),
        (0, [5], [float("nan")]),
        (0, [5], ["x"]),
        (0, "x", []),
        (1.5, [5], []),
    ):
        with pytest.raises(ArgumentError):
            handle.offer(n_before, tokens, confidence)  # type: ignore[arg-type]
    for branches in ([(2, [5])], [(-1, [5])], [(0, [-1])], [(0, ["x"])], [(0, 5)], [5], 5):
        with pytest.raises(ArgumentError):
            handle.offer(0, [5], [], branches)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        handle.offer(0, [5], [0.5, 1.5], [(0, [5])])
    handle.offer(0, [], [0.5, 0.5])  # more confidence than there are tokens: what of it
    assert rounds_of(handle)
    handle.cancel()


def test_offers_at_the_wrong_time(session: SpecSession) -> None:
    waiting = session.host(MODULE, paced=True, max_tokens=N)
    rounds_of(waiting)
    late = session.host(MODULE, max_tokens=2)
    with pytest.raises(ArgumentError, match="has not begun yet"):
        late.offer(0, [5])
    waiting.cancel()
    assert late.result(60).finish_reason == "length"
    late.offer(0, [5])  # it is over: nothing happens
    assert waiting.result(60).finish_reason is None
    waiting.offer(0, [5])
    session.close()
    with pytest.raises(ClosedError):
        late.offer(0, [5])


def test_beside_a_draft_model_of_fixed_length(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT, offers=True, exact=EXACT_HERE, spec_length=8)
    expected = session.generate(MODULE, max_tokens=N)
    found, rounds = paced(session, lambda _, tokens: expected.tokens[len(tokens) :][:4])
    assert found.tokens == expected.tokens
    assert [one.accepted for one in rounds[1:-1]] == [4] * (len(rounds) - 2)


def test_a_session_without_offers_takes_none(open_session: Open) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match="open it with offers"):
        session.host(MODULE, paced=True)
    handle = session.host(MODULE, max_tokens=3)
    rounds_of(handle)
    with pytest.raises(ArgumentError, match="open it with offers"):
        handle.offer(0, [5])
    assert handle.result(60).finish_reason == "length"


def test_who_cancels_a_wait_for_rounds_loses_none(session: SpecSession) -> None:
    async def main() -> None:
        handle = session.host(MODULE, paced=True, max_tokens=N)
        first = await handle.next_rounds()
        wait = asyncio.ensure_future(handle.next_rounds())
        await asyncio.sleep(0)
        wait.cancel()
        handle.offer(0, [])
        (second,) = await handle.next_rounds()
        assert second.n_generated == first[-1].n_generated + 1
        handle.cancel()
        await handle

    asyncio.run(main())


def test_rounds_of_a_text_with_a_stop_string(session: SpecSession) -> None:
    """What the stop string takes off again is told by n_generated."""
    options: dict[str, Any] = {"max_tokens": 80, "stop": ["self.size", "offset)\n"]}
    expected = session.generate(MODULE, **options)
    whole = session.generate(MODULE, max_tokens=80).tokens
    found, rounds = paced(session, lambda _, tokens: whole[len(tokens) :][:7], **options)
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert rounds[-1].n_generated == len(expected.tokens)
    assert "".join(chunk.text for one in rounds for chunk in one.chunks) == expected.text


def test_each_handle_is_read_its_way(session: SpecSession) -> None:
    hosted, plain = session.host(MODULE, max_tokens=3), session.submit(MODULE, max_tokens=3)
    with pytest.raises(ArgumentError, match="its chunks come with its rounds"):
        next(iter(hosted))
    with pytest.raises(ArgumentError, match="its chunks come with its rounds"):
        asyncio.run(hosted.next_chunks())
    with pytest.raises(ArgumentError, match=r"was not made by host\(\)"):
        asyncio.run(plain.next_rounds())
    assert hosted.result(60).tokens == plain.result(60).tokens


def test_what_a_stop_string_holds_back_is_told(session: SpecSession) -> None:
    text = session.generate(MODULE, max_tokens=N).text
    stop = text[:20] + "\N{ROCKET}"  # begins, and never ends
    found, rounds = paced(session, lambda *_: [], stop=stop)
    assert found.text == text
    certain = ""
    for one in rounds:
        certain += "".join(chunk.text for chunk in one.chunks)
        assert text.startswith(certain + one.held)
    assert certain == text
    assert rounds[2].held
    assert not rounds[2].chunks
    assert not rounds[-1].held
