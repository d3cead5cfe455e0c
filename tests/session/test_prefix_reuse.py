"""The KV memory of one request is reused by others with the same prefix."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
from near_ties import tie
from random_model import CUTTABLE, EOS, WRITERS, words
from session_options import EXACT_HERE, Open
from specllama import SpecSession, Stream
from specllama.session import BUNDLED_DRAFT

NEAR = 0.15
"""Nats: rounding, if a window's cells are in another order."""
SYSTEM = [1, *words(99, seed=1)]
"""A prompt with whose beginning several requests start."""


@pytest.fixture(params=sorted(WRITERS))
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def sessions(kind: str, tmp_path: Path, open_session: Open) -> tuple[SpecSession, SpecSession]:
    """A session for fresh answers, and one of several sequences with separate memories."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    options: dict[str, Any] = {"exact": EXACT_HERE if kind in CUTTABLE else "auto"}
    if kind == "sliding window":
        options["exact"] = EXACT_HERE
    return open_session(model, None, **options), open_session(model, n_seq=3, **options)


def fresh(session: SpecSession, prompt: list[int], n: int, **options: Any) -> list[int]:
    session.generate([8], max_tokens=1)  # no common prefix with the next one
    return session.generate(prompt, max_tokens=n, **options).tokens


def test_cache_prompt_false_decodes_the_whole_prompt(
    sessions: tuple[SpecSession, SpecSession], kind: str
) -> None:
    """Also if the memory contains its prefix; later requests reuse the result."""
    solo, session = sessions
    first = session.stream([*SYSTEM, 5, 6], max_tokens=40)
    next(first)
    prompt = [*SYSTEM, 7, 8, 9]
    for _ in range(2):
        anew = session.generate(prompt, max_tokens=20, cache_prompt=False)
        assert anew.stats.reused_tokens == 0
        assert anew.tokens == fresh(solo, prompt, 20)
    list(first)
    if kind in CUTTABLE:
        assert session.generate(prompt, max_tokens=1).stats.reused_tokens == len(prompt) - 1


def test_a_new_prompt_replaces_the_most_similar_one(tmp_path: Path, open_session: Open) -> None:
    """Another conversation keeps its slot and can continue."""
    model = WRITERS["dense"](tmp_path / "random.gguf")
    session = open_session(model, None, n_seq=2, cache_ram=0)
    mine, other = [*SYSTEM, 5, 6], [1, *words(90, seed=2)]
    session.generate(other, max_tokens=1)
    for _ in range(3):
        session.generate(mine, max_tokens=1, cache_prompt=False)
    assert session.generate(other, max_tokens=1).stats.reused_tokens == len(other) - 1


def test_a_common_prefix_of_two_requests_is_decoded_once(
    sessions: tuple[SpecSession, SpecSession], kind: str
) -> None:
    """The prefix of a running request, and that of an ended one."""
    solo, session = sessions
    first = session.stream([*SYSTEM, 5, 6], max_tokens=40)
    next(first)
    prompt = [*SYSTEM, 7, 8, 9]
    second = session.generate(prompt, max_tokens=20)
    assert second.tokens == fresh(solo, prompt, 20)
    if kind in CUTTABLE:  # others only by chance
        assert second.stats.reused_tokens == 100
    list(first)
    assert first.result().tokens == fresh(solo, [*SYSTEM, 5, 6], 40)
    third = session.generate([*SYSTEM, 10], max_tokens=20)
    assert third.tokens == fresh(solo, [*SYSTEM, 10], 20)
    if kind in CUTTABLE:
        assert third.stats.reused_tokens == 100


def test_a_repeated_prompt_is_reused(sessions: tuple[SpecSession, SpecSession], kind: str) -> None:
    """In memories that cannot be rewound, the state four tokens before a prompt's end is saved."""
    solo, session = sessions
    n_reused = 99 if kind in (*CUTTABLE, "sliding window") else 96
    expected = fresh(solo, SYSTEM, 30)
    streams = [session.stream(SYSTEM, max_tokens=30)]
    next(streams[0])
    streams.append(session.stream(SYSTEM, max_tokens=30))
    for stream in streams:
        list(stream)
        assert stream.result().tokens == expected
    assert [stream.stats.reused_tokens for stream in streams] == [0, n_reused]
    again = session.generate(SYSTEM, max_tokens=30)
    assert again.tokens == expected
    assert again.stats.reused_tokens == n_reused


@pytest.mark.parametrize("n_seq", [1, 3])
def test_a_prompt_without_the_previous_answer_is_reused(
    open_session: Open, tmp_path: Path, kind: str, n_seq: int
) -> None:
    """The next turn leaves out a model's thought and the end of the prompt that began it. By then,
    a window has moved on."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    options: dict[str, Any] = {"logit_bias": {EOS: -100.0}}
    session, solo = open_session(model, n_seq=n_seq, n_batch=64), open_session(model, n_batch=64)
    talk = [1, *words(149, seed=7)]
    for turn in range(3):
        session.generate([*talk, 5, 6], max_tokens=400, **options)
        n_common = len(talk)
        talk += words(60, seed=8 + turn)
        found = session.generate([*talk, 5, 6], max_tokens=20, **options)
        assert found.stats.reused_tokens == (n_common if kind in CUTTABLE else n_common - 2)
        assert found.tokens == fresh(solo, [*talk, 5, 6], 20, **options)


@pytest.mark.parametrize("n_seq", [1, 3])
def test_a_rewritten_turn_is_reused_up_to_the_change(
    open_session: Open, tmp_path: Path, kind: str, n_seq: int
) -> None:
    """In all kinds of memory."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    options: dict[str, Any] = {"logit_bias": {EOS: -100.0}}
    session, solo = open_session(model, n_seq=n_seq, n_batch=64), open_session(model, n_batch=64)
    talk = [1, *words(149, seed=7)]
    session.generate(talk, max_tokens=400, **options)
    for seed in (9, 10, 11):
        anew = [*talk, *words(100, seed)]
        found = session.generate(anew, max_tokens=300, **options)
        assert len(talk) - 16 <= found.stats.reused_tokens <= len(talk)
        assert found.tokens[:20] == fresh(solo, anew, 20, **options)


def answer_beside(session: SpecSession, prompt: list[int]) -> Stream:
    return session.stream(prompt, max_tokens=100, logit_bias={EOS: -100.0}, logprobs=20)


def test_a_sliding_window_is_copied_before_its_slot_is_reused(
    open_session: Open, tmp_path: Path
) -> None:
    """llama.cpp copies with the next decode. Before that, another request takes the source slot,
    whose window could still be rewound to the end of its prompt."""
    model = WRITERS["sliding window"](tmp_path / "random.gguf")
    session, solo = open_session(model, None, n_seq=3, n_batch=64), open_session(model, None)
    first = session.stream(SYSTEM, max_tokens=360, logit_bias={EOS: -100.0})
    while len(first.result().tokens) < 241:
        next(first)
    text = [*SYSTEM, *first.result().tokens]
    prompts = [[*text[:299], 5, 6], [*SYSTEM[:98], 7, 8, 9]]
    copied = answer_beside(session, prompts[0])
    first.cancel()
    streams = [copied, answer_beside(session, prompts[1])]
    for stream, prompt in zip(streams, prompts, strict=True):
        list(stream)
        expected = answer_beside(solo, prompt)
        list(expected)
        distance = tie(expected.result(), stream.result().tokens)
        assert distance is None or distance < NEAR


def test_a_sliding_window_with_a_pending_copy_is_not_cached(
    open_session: Open, tmp_path: Path
) -> None:
    model = WRITERS["sliding window"](tmp_path / "random.gguf")
    session, solo = open_session(model, None, n_seq=4, n_batch=64), open_session(model, None)
    for seed in (11, 12, 13, 14):  # so that the target slots of copies are not empty
        session.generate([4 + seed, *words(150, seed)], max_tokens=40)
    texts = [SYSTEM, [3, *words(99, seed=2)]]
    running = [session.stream(text, max_tokens=600, logit_bias={EOS: -100.0}) for text in texts]
    for stream in running:
        next(stream)
    copied = [answer_beside(session, [*text, 5, 6]) for text in texts]
    copied[0].cancel()
    session.generate([*SYSTEM, 5, 7, *words(80, seed=5)], max_tokens=300, logit_bias={EOS: -100.0})
    for stream in (*running, copied[1]):
        list(stream)
    prompt = [*SYSTEM, 9, 9]
    found, expected = answer_beside(session, prompt), answer_beside(solo, prompt)
    list(found)
    list(expected)
    assert found.stats.reused_tokens >= 96
    distance = tie(expected.result(), found.result().tokens)
    assert distance is None or distance < NEAR


def test_alternating_conversations_keep_their_kv_memory(
    sessions: tuple[SpecSession, SpecSession],
) -> None:
    """Each keeps its own sequence."""
    solo, session = sessions
    talks = [[1, *words(50, seed)] for seed in (5, 6)]
    for turn in range(3):
        for i, talk in enumerate(talks):
            answer = session.generate(talk, max_tokens=20)
            assert answer.tokens == fresh(solo, talk, 20)
            if turn > 0:
                assert answer.stats.reused_tokens >= len(talk) - 26
            talks[i] = [*talk, *answer.tokens, 9, 10]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="not claimed elsewhere")
def test_a_reused_sliding_window_is_bit_exact(open_session: Open, tmp_path: Path) -> None:
    """Also after another text that was longer than the window's memory."""
    model = WRITERS["sliding window"](tmp_path / "random.gguf")
    solo = open_session(model, None, exact=True)
    session = open_session(model, exact=True, n_seq=2, n_batch=64)
    text = [1, *words(299, seed=3)]
    options: dict[str, Any] = {"max_tokens": 60, "logprobs": 3}
    for i in range(16):
        session.generate([*text, i], max_tokens=40)
        prompt = [*text[: 160 + 5 * i], 9, i]
        found = session.generate(prompt, **options)
        assert found.stats.reused_tokens == 160 + 5 * i
        solo.generate([8], max_tokens=1)
        expected = solo.generate(prompt, **options)
        for a, b in zip(found.logprobs, expected.logprobs, strict=True):
            assert (a.logprob, a.top) == (b.logprob, b.top)


def test_the_least_recently_used_slot_is_replaced(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=2)
    prompts = [[n, *range(5, 105)] for n in (1, 2, 3)]

    def reused(i: int) -> int:
        return session.generate(prompts[i], max_tokens=2).stats.reused_tokens

    assert [reused(i) for i in (0, 1, 0)] == [0, 0, 100]
    assert reused(2) == 0  # replaces 1
    assert reused(0) == 100
    assert reused(1) == 0


def test_a_short_common_prefix_does_not_evict_a_long_text(open_session: Open) -> None:
    session = open_session(draft=None, n_seq=2)
    long = [1, *range(5, 405)]
    session.generate(long, max_tokens=2)
    # The prefix is copied; the slot keeps its text.
    assert session.generate([*long[:50], 9, 9], max_tokens=2).stats.reused_tokens == 50
    assert session.generate(long, max_tokens=2).stats.reused_tokens == 400


def test_the_draft_model_reuses_a_common_prefix(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT, n_seq=2)
    prompt = [1, *range(5, 205)]
    first = session.stream(prompt, max_tokens=40)
    for _ in range(20):
        next(first)
    second = session.generate([*prompt[:150], 9], max_tokens=20)
    assert second.stats.reused_tokens == 150
    assert 0 < second.stats.draft_decoded_tokens < 100
    assert (
        second.tokens == open_session(draft=None).generate([*prompt[:150], 9], max_tokens=20).tokens
    )


@pytest.mark.parametrize(
    ("kind", "draft", "n_seq", "options", "separate"),
    [
        ("sliding window", "ngram", 5, {}, True),
        ("dense", None, 5, {}, True),
        ("dense", "ngram", 5, {}, False),
        ("dense", "ngram", 16, {}, True),
        ("dense", "ngram", 16, {"verifies": True}, True),  # as in a server
        ("dense", "ngram", 16, {"spec_length": 4}, False),
        ("dense", "ngram", 16, {"spec_tree": 2}, False),
    ],
)
def test_requests_with_separate_memories_get_neighbouring_slots(
    kind: str,
    draft: str | None,
    n_seq: int,
    options: dict[str, Any],
    separate: bool,
    open_session: Open,
    tmp_path: Path,
) -> None:
    """Only these are decoded together. In a shared memory the slot that has been free the longest
    is taken."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    session = open_session(model, draft, **{"n_seq": n_seq, "spec_length": "auto"} | options)
    prompts = iter([words(10, seed=seed) for seed in range(n_seq + 3)])
    for _ in range(n_seq - 1):
        session.generate(next(prompts), max_tokens=1)
    slots = []
    running = []
    for i in range(4):
        if i == 3:
            running[1].close()
        running.append(session.stream(next(prompts), max_tokens=60, logit_bias={EOS: -100.0}))
        next(running[-1])
        slots.append(running[-1].stats.slot)
    last = n_seq - 1
    assert slots == ([last, last - 1, last - 2, last - 1] if separate else [last, 0, 1, 2])
