"""Several requests in one session: each gets the tokens that it gets alone."""

from __future__ import annotations

import math
import platform
import random
import statistics
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from near_ties import logprob_differences
from numpy.typing import NDArray
from random_model import N_VOCAB, WRITERS
from specllama import ArgumentError, BusyError, DecodeError, Drafter, SpecSession, Stream
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]
N_SEQ = 5


@dataclass
class Request:
    """A prompt, its options, and the number of tokens after which its reader leaves (None: at the
    end)."""

    prompt: list[int]
    options: dict[str, Any] = field(default_factory=dict)
    patience: int | None = None


def mixed(n_vocab: int) -> list[Request]:
    """Return short and long prompts, some within a batch's share, some longer than a batch; greedy
    and sampled; some repetitive, so that drafts are made; some with a common beginning."""
    rng = random.Random(5)
    phrase = [rng.randrange(3, n_vocab - 1) for _ in range(12)]
    requests = []
    for i in range(16):
        if i % 4:
            phrase = [rng.randrange(3, n_vocab - 1) for _ in range(12)]
        length = rng.choice([1, 5, 31, 33, 60, 90, 150])
        options = {
            "max_tokens": rng.choice([1, 20, 45]),
            "temperature": rng.choice([0.0, 0.0, 0.8, 1.2]),
            "seed": i,
        }
        prompt = [1, *(phrase * (length // 12 + 1))][:length]
        requests.append(Request(prompt, options, patience=7 if i % 5 == 3 else None))
    return requests


def read(stream: Stream, patience: int | None) -> Iterator[None]:
    """Read chunk by chunk, and leave after `patience` chunks (None: at the end)."""
    for n_read, _ in enumerate(stream, 1):
        if n_read == patience:
            stream.close()
        yield


def alone(session: SpecSession, requests: list[Request]) -> list[list[int]]:
    results = []
    for request in requests:
        stream = session.stream(request.prompt, **request.options)
        for _ in read(stream, request.patience):
            pass
        results.append(stream.result().tokens)
    return results


def together(session: SpecSession, requests: list[Request]) -> list[Stream]:
    """Keep the session full: when one request ends, the next begins."""
    waiting = deque(requests)
    streams: list[Stream] = []
    readers: deque[Iterator[None]] = deque()
    while waiting or readers:
        while waiting and len(readers) < N_SEQ:
            request = waiting.popleft()
            streams.append(session.stream(request.prompt, **request.options))
            readers.append(read(streams[-1], request.patience))
        readers.rotate(1)
        if next(readers[0], 1):
            readers.popleft()
    return streams


def check_independence(solo: SpecSession, session: SpecSession) -> int:
    """Return the number of drafted tokens."""
    requests = mixed(solo.n_vocab)
    # A stop string from the middle of the expected text.
    for i in (2, 9):
        whole = solo.generate(requests[i].prompt, **requests[i].options).text
        requests[i].options["stop"] = whole[len(whole) // 2 :][:3] or "none"
    expected = alone(solo, requests)
    streams = together(session, requests)
    for i, (stream, tokens) in enumerate(zip(streams, expected, strict=True)):
        found = stream.result()
        if requests[i].patience is None:
            assert found.tokens == tokens, i
        else:  # rounds decide where it ends after its reader has left
            n = min(len(found.tokens), len(tokens))
            assert n >= min(len(tokens), 7)
            assert found.tokens[:n] == tokens[:n], i
        assert found.stats.drafter_errors == 0
    return sum(stream.result().stats.drafted for stream in streams)


x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="exactness is claimed for x86-64 only"
)


@x86
@pytest.mark.parametrize("spec_length", [4, "auto"])
@pytest.mark.parametrize("draft", ["ngram", BUNDLED_DRAFT])
def test_requests_of_exact_sessions_get_the_tokens_of_each_alone(
    open_session: Open, open_planned: Open, draft: Any, spec_length: Any
) -> None:
    options: dict[str, Any] = {"exact": True, "n_batch": 64}
    solo = open_session(draft=None, **options)
    open_one = open_planned if spec_length == "auto" else open_session
    session = open_one(draft=draft, n_ctx=300, n_seq=N_SEQ, **options)
    assert check_independence(solo, session) > 0
    assert session.generate([1], max_tokens=1).stats.exact


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_requests_of_every_kind_of_model_are_independent(
    open_session: Open, tmp_path: Path, kind: str
) -> None:
    """No token is decoded alone in models with float weights (experts, snapshots).

    Recurrent and hybrid models with float weights are not exact, but their measured tokens were the
    same, too.
    """
    model = WRITERS[kind](tmp_path / "random.gguf")
    exact = "auto" if kind in ("recurrent", "hybrid") else platform.machine() == "x86_64"
    options: dict[str, Any] = {"exact": exact, "n_batch": 64}
    solo = open_session(model, None, **options)
    session = open_session(model, n_seq=N_SEQ, n_ctx=300, **options)
    assert check_independence(solo, session) > 0


def test_logprobs_in_a_shared_memory_differ_by_rounding_only(open_session: Open) -> None:
    """Rounding of up to 0.3 nats may decide near-ties (docs/internals/exactness.md); tokens of
    other requests would change far more."""
    solo = open_session(draft=None)
    session = open_session(n_seq=N_SEQ, n_batch=64)
    requests = [Request(r.prompt, r.options | {"logprobs": 0}) for r in mixed(solo.n_vocab)]
    differences: list[float] = []
    for request, stream in zip(requests, together(session, requests), strict=True):
        found = stream.result()
        assert not found.stats.exact
        expected = solo.generate(request.prompt, **request.options)
        assert len(found.tokens) == len(expected.tokens) or found.finish_reason == "stop"
        differences += logprob_differences(found, expected)
    assert len(differences) > 100
    assert max(differences) < 0.5
    assert statistics.median(differences) < 0.05


def test_a_long_prompt_does_not_stall_others(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=2, n_batch=16)
    quick = session.stream([1, 5, 6], max_tokens=60, logit_bias={0: -math.inf})
    next(quick)
    slow = session.stream([1, *range(5, 405)], max_tokens=1)
    n_steps = 0
    while slow._state.stream.in_prompt:
        assert session._backend.step()
        n_steps += 1
        assert len(quick.result().tokens) == 1 + n_steps
        # The last tokens share the round's batch, as many as each of two sequences may have.
        assert slow._state.stream.n_prefilled <= 16 * n_steps + 8


def test_long_prompts_are_decoded_in_turns(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=3, n_batch=16)
    streams = [session.stream([n, *range(5, 205)], max_tokens=1) for n in range(3)]
    for _ in range(9):
        session._backend.step()
    assert [stream._stream.n_prefilled for stream in streams] == [48, 48, 48]


def test_short_prompts_are_decoded_together(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=3, n_batch=90)
    streams = [session.stream([n, *range(5, 35)], max_tokens=9) for n in range(3)]
    session._backend.step()
    assert [stream._stream.n_prefilled for stream in streams] == [31, 31, 31]
    assert [len(stream.result().tokens) for stream in streams] == [1, 1, 1]


def test_a_prompt_gets_a_batch_next_to_the_round(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=2, n_batch=90)
    first = session.stream([1, 5, 6], max_tokens=9)
    session._backend.step()
    second = session.stream([2, *range(5, 137)], max_tokens=9)
    for n_prefilled, n_generated in ((90, 2), (133, 3)):
        session._backend.step()
        assert second._state.stream.n_prefilled == n_prefilled
        assert len(first.result().tokens) == n_generated
    assert len(second.result().tokens) == 1


def test_the_tail_of_a_prompt_is_decoded_with_a_round(open_session: Open) -> None:
    """Next to another request, in the same memory, the last 23 of 109 tokens are decoded with its
    round; alone, the prompt takes two steps."""
    session = open_session(draft="ngram", n_seq=2, n_batch=90)
    prompt = [2, *range(5, 113)]
    with session.stream(prompt, max_tokens=1) as alone:
        session._backend.step()
        assert alone._state.stream.n_prefilled == 90
    first = session.stream([1, 5, 6], max_tokens=9)
    session._backend.step()
    second = session.stream([3, *prompt[1:]], max_tokens=9)
    session._backend.step()
    assert second._state.stream.n_prefilled == len(prompt)
    assert [len(stream.result().tokens) for stream in (first, second)] == [2, 1]


def test_chunks_from_steps_of_other_streams_are_kept(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=3)
    core = session._backend
    assert core.n_seq == core.n_free == 3
    assert not core.step()  # nothing to do
    requests = [session.stream([1, 5, n], max_tokens=4) for n in (6, 7)]
    streams = [request._state.stream for request in requests]
    assert core.n_free == 1
    assert streams[0].take() == []
    assert core.step()
    assert [len(stream.take()) for stream in streams] == [1, 1]
    while core.step():
        pass
    assert core.n_free == 3
    for stream in streams:
        chunks = stream.take()
        assert len(chunks) == 3
        assert chunks[-1].finish_reason == "length"
        assert stream.done
        assert stream.take() == []
        assert stream.step() is None


def test_streams_beyond_n_seq_raise_busy_error(open_session: Open) -> None:
    session = open_session(n_seq=2)
    streams = [session.stream([1, 5, n], max_tokens=20) for n in (6, 7)]
    with pytest.raises(BusyError, match="All 2 sequences of the session are in use"):
        session.stream([1, 8])
    assert session.generate([1, 8], max_tokens=0).tokens == []  # needs no slot
    streams[0].close()
    assert len(session.generate([1, 8], max_tokens=5).tokens) == 5
    assert len([chunk.token for chunk in streams[1]]) == 20


def test_an_error_of_a_request_does_not_end_others(open_session: Open, tmp_path: Path) -> None:
    model = WRITERS["dense"](tmp_path / "random.gguf")
    session = open_session(model, n_seq=3)
    bias = {2: -math.inf}
    good = [session.stream([1, 5, n], max_tokens=30, logit_bias=bias) for n in (6, 7)]
    bad = session.stream([1, 5, 6], logit_bias=dict.fromkeys(range(N_VOCAB), -math.inf))
    assert [len([chunk.token for chunk in stream]) for stream in good] == [30, 30]
    assert session._backend.n_free == 3
    with pytest.raises(DecodeError, match="nothing to choose from"):
        next(bad)
    assert list(bad) == []
    assert bad.result().tokens == []
    assert bad.result().finish_reason is None


class FailsForSome(Drafter):
    """Fails for texts with one beginning; repeats the last token of all others."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        if tokens[0] == 9:
            raise RuntimeError("boom")
        return [int(tokens[-1])] * max_tokens


def test_an_error_of_a_drafter_affects_its_own_request_only(open_session: Open) -> None:
    session = open_session(draft=FailsForSome(), n_seq=3, n_batch=64)
    options: dict[str, Any] = {"max_tokens": 20, "logit_bias": {0: -math.inf}}
    streams = [session.stream([first, 5, 6], **options) for first in (9, 7, 8)]
    while session._backend.step():
        pass
    failed, *others = (stream.result() for stream in streams)
    assert failed.stats.drafter_errors > 0
    assert "RuntimeError: boom" in failed.stats.last_drafter_error
    assert failed.stats.drafted == 0
    for one in (failed, *others):
        assert len(one.tokens) == 20
    for one in others:
        assert one.stats.drafter_errors == 0
        assert one.stats.drafted > 0


def test_any_thread_can_generate(open_session: Open) -> None:
    options: dict[str, Any] = {"exact": platform.machine() == "x86_64"}
    solo = open_session(draft=None, **options)
    prompts = [[1, 5, 6, n] for n in range(7, 7 + 2 * N_SEQ)]
    expected = [solo.generate(prompt, max_tokens=30).tokens for prompt in prompts]
    session = open_session(n_seq=N_SEQ, **options)
    free = threading.Semaphore(N_SEQ)
    results: dict[int, list[int]] = {}

    def generate(i: int) -> None:
        with free:
            results[i] = session.generate(prompts[i], max_tokens=30).tokens

    threads = [threading.Thread(target=generate, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[i] for i in range(len(prompts))] == expected


class Calling(Drafter):
    """Calls its session from inside `propose`."""

    def __init__(self) -> None:
        self.call: Callable[[], object] = lambda: None

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.call()
        return []


def test_a_drafter_of_batched_requests_cannot_call_its_session(open_session: Open) -> None:
    drafter = Calling()
    session = open_session(draft=drafter, n_seq=2)
    drafter.call = lambda: session.generate([1])
    stats = session.generate([1, 5, 6], max_tokens=5).stats
    assert "BusyError" in stats.last_drafter_error


def test_a_request_can_be_cancelled_during_a_step(open_session: Open) -> None:
    drafter = Calling()
    session = open_session(draft=drafter, n_seq=2)
    streams = [session.stream([1, 5, n], max_tokens=20) for n in (6, 7)]
    drafter.call = streams[0]._state.stream.cancel  # as another thread might
    session._backend.step()  # decodes the prompts' ends, which need no drafter
    session._backend.step()
    assert session._backend.n_free == 1
    assert len(list(streams[0])) == 2
    assert len(list(streams[1])) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_seq": 0}, "n_seq must be from 1 to 64, not 0"),
        ({"n_seq": 65}, "n_seq must be from 1 to 64, not 65"),
        ({"n_seq": 2.5}, "n_seq"),
        ({"n_seq": 8, "n_batch": 7}, "n_batch must be at least n_seq, which is 8, not 7"),
    ],
)
def test_bad_batching_options_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(**options)
