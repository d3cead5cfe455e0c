"""Requests from any thread: handles, the queue, cancellation, errors, asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import time
import weakref
from typing import Any

import pytest
from processes import run_script
from prompts import LONG, PROMPTS
from scripted_model import BOS
from session_options import Open
from specllama import (
    ArgumentError,
    BusyError,
    ClosedError,
    DecodeError,
    Generation,
    QueueFullError,
    SpecSession,
)
from specllama.requests.background import queue_load

MIXED = ["module", "function", "json", "english", "csv", "one token", "emoji"]


def solo(session: SpecSession, name: str, **options: Any) -> Generation:
    return session.generate(PROMPTS[name], **options)


@pytest.mark.here_and_served
def test_a_handle_gives_the_result_of_generate(open_session: Open) -> None:
    session = open_session()
    for options in ({}, {"temperature": 0.9, "seed": 5, "logprobs": 2}, {"echo": True}):
        expected = session.generate(PROMPTS["module"], max_tokens=40, **options)
        handle = session.submit(PROMPTS["module"], max_tokens=40, **options)
        chunks = list(handle)
        found = handle.result()
        assert (found.text, found.tokens) == (expected.text, expected.tokens)
        assert found.finish_reason == expected.finish_reason
        assert [one.logprob for one in found.logprobs] == [one.logprob for one in expected.logprobs]
        assert [chunk.token for chunk in chunks if chunk.token is not None] == expected.tokens
        assert handle.done()
        assert list(handle) == []  # each chunk goes to one reader


@pytest.mark.here_and_served
def test_several_prompts_are_answered_in_order(open_session: Open) -> None:
    session = open_session(max_queue=2)  # fewer than prompts: generate waits for space
    expected = [solo(session, name, max_tokens=25).tokens for name in MIXED]
    found = session.generate([PROMPTS[name] for name in MIXED], max_tokens=25)
    assert [one.tokens for one in found] == expected
    ids = [session.tokenize(PROMPTS[name]) for name in MIXED[:2]]
    assert [one.tokens for one in session.generate(ids, max_tokens=25)] == expected[:2]


@pytest.mark.here_and_served
def test_each_choice_has_its_own_seed(open_session: Open) -> None:
    session = open_session()
    options: dict[str, Any] = {"max_tokens": 20, "temperature": 1.0}
    choices = session.generate(PROMPTS["module"], n=3, seed=7, **options).choices
    assert choices[0].stats.seed == 7
    assert len({one.stats.seed for one in choices}) == 3
    assert len({one.text for one in choices}) == 3
    for one in choices:
        alone = session.generate(PROMPTS["module"], seed=one.stats.seed, **options)
        assert alone.tokens == one.tokens
    again = session.generate(PROMPTS["module"], n=2, seed=7, **options).choices
    assert [one.tokens for one in again] == [one.tokens for one in choices[:2]]
    fresh = session.generate(PROMPTS["module"], n=2, **options).choices
    assert fresh[0].stats.seed != fresh[1].stats.seed
    for seed in (None, -1):  # a fresh seed
        drawn = session.generate(PROMPTS["module"], n=2, seed=seed, **options).choices
        drawn += [session.submit(PROMPTS["module"], seed=seed, **options).result()]
        assert len({one.stats.seed for one in [*drawn, *fresh]}) == 5
    by_prompt = session.generate([PROMPTS["module"], PROMPTS["csv"]], n=2, seed=7, **options)
    assert [one.tokens for one in by_prompt[0].choices] == [one.tokens for one in again]
    assert [len(one.choices) for one in by_prompt] == [2, 2]


@pytest.mark.here_and_served
def test_the_first_of_several_choices_has_all_of_them(open_session: Open) -> None:
    session = open_session()
    options: dict[str, Any] = {"max_tokens": 5, "temperature": 1.0, "seed": 3}
    first = session.generate("x", n=3, **options)
    assert first.choices[0] is first
    handle = session.submit("x", n=3, **options)
    assert handle.choices[0] is handle
    texts = [one.text for one in first.choices]
    assert [one.result().text for one in handle.choices] == texts
    assert len(set(texts)) == 3
    assert session.generate("x", **options).choices[0].text == texts[0]
    assert first.choices[1].choices == [first.choices[1]]


def test_no_prompts_give_no_results(open_session: Open) -> None:
    assert open_session().generate([]) == []


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", 10**6, 10**400])
def test_bad_numbers_of_choices_are_refused(open_session: Open, n: Any) -> None:
    with pytest.raises(ArgumentError, match="n must be"):
        open_session().generate("x", n=n)


@pytest.mark.here_and_served
def test_any_thread_can_submit_requests(open_session: Open) -> None:
    session = open_session()
    expected = {name: solo(session, name, max_tokens=20).tokens for name in MIXED}
    with concurrent.futures.ThreadPoolExecutor(len(MIXED)) as pool:
        found = pool.map(
            lambda name: session.submit(PROMPTS[name], max_tokens=20).result().tokens, MIXED
        )
    assert dict(zip(MIXED, found, strict=True)) == expected


def test_a_full_queue_raises_queue_full_error(open_session: Open, n_seq: int) -> None:
    session = open_session(max_queue=1)
    first, *_, second = (session.submit(PROMPTS["module"], **LONG) for _ in range(n_seq + 1))
    with pytest.raises(QueueFullError, match="raise max_queue"):
        session.submit("x")
    second.cancel()  # frees its slot in the queue at once
    third = session.submit("x", max_tokens=3)
    first.cancel()
    assert len(third.result().tokens) == 3
    with pytest.raises(ClosedError, match="cancelled before it had begun"):
        second.result()
    with pytest.raises(ClosedError, match="cancelled before it had begun"):
        list(second)
    assert second.so_far() is None


@pytest.mark.here_and_served
def test_cancellation_keeps_the_generated_tokens(open_session: Open) -> None:
    session = open_session()
    expected = solo(session, "module", **LONG).tokens
    handle = session.submit(PROMPTS["module"], **LONG)
    chunks = iter(handle)
    next(chunks)
    handle.cancel()
    result = handle.result(60)
    assert result.finish_reason is None
    assert 0 < len(result.tokens) < len(expected)
    assert result.tokens == expected[: len(result.tokens)]
    assert session.submit(PROMPTS["module"], **LONG).result().tokens == expected
    handle.cancel()  # no effect on an ended request


def test_errors_affect_only_their_own_request(open_session: Open, scripted: Any) -> None:
    session = open_session()
    good = session.submit(PROMPTS["module"], max_tokens=20)
    bad = session.submit("x", grammar='root ::= (("a"{1,1000}){1,1000}){1,1000}')
    also_good = session.submit(PROMPTS["module"], max_tokens=20)
    with pytest.raises(DecodeError, match="grammar became too complex"):
        bad.result()
    with pytest.raises(DecodeError, match="grammar became too complex"):
        list(bad)
    assert good.result().tokens == also_good.result().tokens
    # A request that can never run is refused at once, however long the queue is.
    with pytest.raises(ArgumentError, match="grammar cannot be read"):
        session.submit("x", grammar="root ::= (")
    with pytest.raises(ArgumentError, match="top_k must be"):
        session.submit("x", top_k="many")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="top_p must be from 0"):
        session.submit("x", top_p=-1)
    with pytest.raises(ArgumentError, match="out of range"):
        session.submit([5, 10**9])
    with pytest.raises(ArgumentError, match=f"no room in a context of {session.n_ctx}"):
        session.submit([5] * session.n_ctx)
    with pytest.raises(ArgumentError, match=f"has room for {session.n_ctx - 1}"):
        session.submit([5], max_tokens=session.n_ctx)
    model = scripted(["a"], output_scale=float("nan"))
    broken = open_session(model, kv_type="f16", exact=False)
    for _ in range(2):  # the worker continues
        with pytest.raises(DecodeError, match="not numbers"):
            broken.submit([BOS]).result()


@pytest.mark.here_and_served
def test_streams_advance_with_requests(open_session: Open, n_seq: int) -> None:
    """A stream uses a slot, too, and advances with the requests."""
    session = open_session()
    expected = solo(session, "module", max_tokens=30)
    streams = [session.stream(PROMPTS["module"], max_tokens=30) for _ in range(n_seq)]
    handle = session.submit(PROMPTS["module"], max_tokens=30)
    if n_seq == 1:
        with pytest.raises(BusyError, match="unfinished generation in another thread"):
            handle.result(60)
    else:
        assert handle.result(60).tokens == expected.tokens
    for stream in streams:
        assert "".join(chunk.text for chunk in stream) == expected.text


def test_result_with_a_timeout_raises_timeout_error(open_session: Open) -> None:
    handle = open_session().submit(PROMPTS["module"], **LONG)
    with pytest.raises(concurrent.futures.TimeoutError):
        handle.result(0.0)
    assert not handle.done()


@pytest.mark.here_and_served
def test_closing_ends_running_and_waiting_requests(open_session: Open) -> None:
    session = open_session()
    handles = [session.submit(PROMPTS["module"], **LONG) for _ in range(3)]
    next(iter(handles[0]))
    session.close()
    for handle in handles:
        with pytest.raises(ClosedError, match="closed before"):
            handle.result(60)
    assert handles[0].so_far() is not None
    with pytest.raises(ClosedError, match="open a new one"):
        session.submit("x")


def test_dropping_an_idle_session_ends_its_thread() -> None:
    before = threading.enumerate()
    session = SpecSession(n_threads=1, n_gpu_layers=0)
    expected = session.submit("x", max_tokens=2).result().tokens
    assert len(expected) == 2
    (thread,) = (
        one for one in threading.enumerate() if one.name == "specllama" and one not in before
    )
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    thread.join(60)
    assert not thread.is_alive()
    # A handle keeps its session alive.
    handle = SpecSession(n_threads=1, n_gpu_layers=0).submit("x", max_tokens=2)
    gc.collect()
    assert handle.result().tokens == expected


def test_a_process_can_exit_with_unfinished_requests() -> None:
    script = (
        "from specllama import SpecSession\n"
        "session = SpecSession(n_threads=1, n_gpu_layers=0)\n"
        "handles = [session.submit('x', max_tokens=2000, seed=i) for i in range(4)]\n"
        "next(iter(handles[0]))\n"
        "print('bye')\n"
    )
    assert run_script(script) == (0, "bye\n", "")


@pytest.mark.here_and_served
def test_asyncio_calls_give_the_results_of_generate(open_session: Open) -> None:
    session = open_session()
    expected = [solo(session, name, max_tokens=20) for name in MIXED]

    async def all_at_once() -> tuple[list[Generation], str, list[Generation]]:
        tasks = [session.agenerate(PROMPTS[name], max_tokens=20) for name in MIXED]
        found = await asyncio.gather(*tasks)
        text = ""
        async for chunk in session.astream(PROMPTS["module"], max_tokens=20):
            text += chunk.text
        choices = await session.agenerate("x", n=2, seed=3, temperature=1.0, max_tokens=5)
        return found, text, choices.choices

    found, text, choices = asyncio.run(all_at_once())
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert text == expected[0].text
    same = session.generate("x", n=2, seed=3, temperature=1.0, max_tokens=5).choices
    assert [one.tokens for one in choices] == [one.tokens for one in same]


@pytest.mark.here_and_served
def test_cancelling_a_task_cancels_its_request(open_session: Open) -> None:
    session = open_session()

    async def cancelled(task: asyncio.Task[Any]) -> None:
        while not queue_load(session).n_running:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while queue_load(session).n_running:
            await asyncio.sleep(0.001)

    async def read() -> None:
        async for _ in session.astream(PROMPTS["module"], **LONG):
            pass

    async def leave() -> None:
        stream = session.astream(PROMPTS["module"], **LONG)
        async for _ in stream:
            break
        await stream.aclose()
        while queue_load(session).n_running:
            await asyncio.sleep(0.001)

    async def everything() -> None:
        await cancelled(asyncio.create_task(session.agenerate(PROMPTS["module"], **LONG)))
        await cancelled(asyncio.create_task(read()))
        await leave()

    asyncio.run(everything())
    assert session.generate("x", max_tokens=2).tokens


def test_last_is_the_last_generation_of_asyncio_calls(open_session: Open, n_seq: int) -> None:
    session = open_session(max_queue=0)
    session.generate("x", max_tokens=2)

    async def leave() -> None:
        async for _ in session.astream(PROMPTS["module"], **LONG):
            break

    asyncio.run(leave())
    left = session.last
    assert left is not None
    assert left.finish_reason is None
    while queue_load(session).n_running:
        time.sleep(0.001)
    running = [session.submit(PROMPTS["module"], **LONG) for _ in range(n_seq)]
    with pytest.raises(QueueFullError):
        asyncio.run(session.agenerate("x", max_tokens=2))
    assert session.last is not None
    assert session.last.tokens[: len(left.tokens)] == left.tokens
    for one in running:
        one.cancel()


@pytest.mark.here_and_served
def test_unread_requests_finish_and_do_not_block_others(open_session: Open) -> None:
    """A request without a reader still ends, and so do later ones."""
    session = open_session()
    unread = session.submit(PROMPTS["module"], max_tokens=60)
    behind = session.submit(PROMPTS["module"], max_tokens=60)
    assert behind.result().tokens == unread.result().tokens
    assert "".join(chunk.text for chunk in unread) == unread.result().text


@pytest.mark.here_and_served
def test_load_reports_running_and_waiting_requests(open_session: Open, n_seq: int) -> None:
    session = open_session()
    assert (queue_load(session).n_running, queue_load(session).n_waiting) == (0, 0)
    handles = [session.submit(PROMPTS["module"], **LONG) for _ in range(n_seq + 2)]
    for handle in handles[:n_seq]:
        next(iter(handle))
    load = queue_load(session)
    assert (load.n_running, load.n_waiting) == (n_seq, 2)
    for handle in handles:
        handle.cancel()
    n_done = len(handles[0].result().tokens)
    assert queue_load(session).generated_tokens >= n_done > 0
    assert queue_load(session).tokens_per_second > 0


def test_a_common_prefix_of_simultaneous_requests_is_decoded_once(
    open_session: Open, n_seq: int
) -> None:
    """All are submitted at once; the later ones wait for the first one's prompt."""
    session = open_session(n_ctx=1024)
    prompt = session.tokenize(PROMPTS["module"] * 3)[:300]
    expected = session.generate(prompt, max_tokens=8, seed=3, temperature=0.8)
    session = open_session(n_ctx=1024)
    longer = session.submit([*prompt, *prompt[:20]], max_tokens=2)
    choices = session.submit(prompt, n=4, max_tokens=8, seed=3, temperature=0.8).choices
    found = [one.result() for one in choices]
    assert found[0].tokens == expected.tokens
    assert len({tuple(one.tokens) for one in found}) > 1
    assert longer.result().stats.reused_tokens == 0
    assert min(one.stats.reused_tokens for one in found) >= len(prompt) - 1


def test_the_queue_accepts_the_choices_of_a_call_together(open_session: Open, n_seq: int) -> None:
    session = open_session(max_queue=1)
    first = [session.submit(PROMPTS["module"], **LONG) for _ in range(n_seq)]
    choices = session.submit("x", n=5, max_tokens=2).choices
    with pytest.raises(QueueFullError, match="raise max_queue"):
        session.submit("x")
    for one in first:
        one.cancel()
    assert [len(one.result().tokens) for one in choices] == [2] * 5
