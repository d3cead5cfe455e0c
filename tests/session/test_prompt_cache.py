"""Conversations evicted from their slot continue from copies in main memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from c_library import compiled, needs_compiler, run_with
from random_model import CUTTABLE, WRITERS, words
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, Generation, SpecSession
from specllama.session import BUNDLED_DRAFT


def conversation(i: int, n: int = 100) -> list[int]:
    """Return a prompt of n tokens without a common prefix with others."""
    return [10 + i, *words(n - 1, seed=i)]


def numbers(generation: Generation) -> list[Any]:
    """Return the log-probabilities of an answer."""
    return [(one.logprob, one.top) for one in generation.logprobs]


def reused(session: SpecSession, prompt: list[int]) -> int:
    return session.generate(prompt, max_tokens=2).stats.reused_tokens


@pytest.mark.parametrize("n_seq", [1, 2])
@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_evicted_conversations_continue_with_the_same_tokens(
    open_session: Open, tmp_path: Path, kind: str, n_seq: int
) -> None:
    """There are more conversations than slots. With every kind of memory, each continues as if it
    had kept its slot; in exact sessions, to the last bit."""
    exact = EXACT_HERE if kind in (*CUTTABLE, "sliding window") else "auto"
    model = WRITERS[kind](tmp_path / "random.gguf")
    solo = open_session(model, exact=exact, n_seq=n_seq)
    roomy = open_session(model, exact=exact, n_seq=n_seq + 2)
    session = open_session(model, exact=exact, n_seq=n_seq, cache_ram=-1)
    talks = [conversation(i) for i in range(n_seq + 2)]
    options: dict[str, Any] = {"max_tokens": 20, "logprobs": 2}
    for turn in range(3):
        for i, talk in enumerate(talks):
            found = session.generate(talk, **options)
            for _ in range(n_seq):
                solo.generate([8], max_tokens=1)  # no common prefix with the next one
            expected = solo.generate(talk, **options)
            assert found.tokens == expected.tokens
            if exact is True:
                assert numbers(found) == numbers(expected)
            n_reused = roomy.generate(talk, **options).stats.reused_tokens
            assert found.stats.reused_tokens == n_reused
            assert (n_reused > 0) == (turn > 0)
            talks[i] = [*talk, *found.tokens, 5, 6, 7]


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_a_repeated_turn_is_reused_from_the_cache(
    open_session: Open, tmp_path: Path, kind: str
) -> None:
    """The turn has the same prompt without the earlier answer. A copy has only the part of a
    sliding window that the next token sees, or the state saved near the prompt's end."""
    model = WRITERS[kind](tmp_path / "random.gguf")
    prompt = conversation(0)
    answers = []
    for n_between in (0, 2):
        session = open_session(model, exact="auto", cache_ram=-1, n_seq=2)
        session.generate(prompt, max_tokens=30)
        for i in range(n_between):
            session.generate(conversation(1 + i), max_tokens=2)
        answers.append(session.generate([*prompt, 5], max_tokens=20))
    near, far = answers
    assert near.tokens == far.tokens
    assert near.stats.reused_tokens == (100 if kind in (*CUTTABLE, "sliding window") else 96)
    assert far.stats.reused_tokens == (100 if kind in CUTTABLE else 96)


def test_without_the_prompt_cache_evicted_prompts_are_lost(open_session: Open) -> None:
    session = open_session(draft=None)
    assert [reused(session, conversation(i)) for i in (0, 1, 0)] == [0, 0, 0]


def test_the_least_recently_used_copy_is_dropped(open_session: Open) -> None:
    """One MiB is enough for three of these conversations with the bundled model."""
    session = open_session(draft=None, cache_ram=1)
    talks = [conversation(i) for i in range(6)]
    for talk in talks:
        reused(session, talk)
    # The last one still has its slot.
    assert [reused(session, talk) for talk in reversed(talks)] == [99, 99, 99, 99, 0, 0]


def test_a_prompt_larger_than_the_cache_is_not_kept(open_session: Open) -> None:
    session = open_session(draft=None, cache_ram=1)
    long, short = conversation(0, 400), conversation(1)
    assert [reused(session, one) for one in (short, long, short, long)] == [0, 0, 99, 0]


def test_a_shared_prefix_keeps_the_copy_of_its_owner(open_session: Open) -> None:
    """The conversation that made the copy can continue from it."""
    session = open_session(draft=None, cache_ram=-1)
    system, talk = conversation(0, 200), words(400, seed=1)
    reused(session, [*system, *talk])
    reused(session, conversation(1))
    assert reused(session, [*system, 5, 6]) == 200
    assert reused(session, [*system, *talk]) == 599


def test_short_prompts_are_not_cached(open_session: Open) -> None:
    session = open_session(draft=None, cache_ram=-1)
    assert [reused(session, conversation(i, 20)) for i in (0, 1, 0)] == [0, 0, 0]


def test_the_prompt_cache_survives_a_beam_search_and_a_saved_state(
    open_session: Open, tmp_path: Path
) -> None:
    session = open_session(draft=None, cache_ram=-1)
    one, other = conversation(0), conversation(1)
    reused(session, one)
    session.beam_search(other, n_beams=2, max_tokens=4)
    assert reused(session, one) == 99
    session.save_state(tmp_path / "state")
    reused(session, other)
    session.load_state(tmp_path / "state")
    assert reused(session, one) == 99
    assert reused(session, other) == 99


def test_cached_prompts_work_with_a_draft_model(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT, cache_ram=-1, spec_length=4)
    prompts = [conversation(i) for i in range(3)]
    first = [session.generate(prompt, max_tokens=20).tokens for prompt in prompts]
    again = [session.generate(prompt, max_tokens=20) for prompt in prompts]
    assert [one.tokens for one in again] == first
    assert [one.stats.reused_tokens for one in again] == [99, 99, 99]


LITTLE = """
import os, sys
from specllama import SpecSession

def leave(kib):
    with open(os.environ["LITTLE_MEMORY"], "w") as file:
        print(f"MemTotal: 9999999 kB\\nMemAvailable: {kib} kB", file=file)

for kib in (4_000_000, 100, 0):
    leave(4_000_000)
    with SpecSession(sys.argv[1], None, n_ctx=512, n_threads=1, cache_ram=-1) as session:
        leave(kib)
        one, other = [1, *range(5, 85)], [2, *range(5, 85)]
        session.generate(one, max_tokens=2)
        session.generate(other, max_tokens=2)
        print(session.generate(one, max_tokens=2).stats.reused_tokens)
"""


@needs_compiler
def test_the_prompt_cache_is_not_used_if_little_memory_is_free(tmp_path: Path) -> None:
    library = compiled("little_memory", tmp_path)
    model = WRITERS["dense"](tmp_path / "random.gguf")
    said = run_with(library, LITTLE, str(model), LITTLE_MEMORY=str(tmp_path / "meminfo"))
    assert said.split() == ["80", "0", "0"]


FAILING = """
import ctypes, gc, sys
from specllama import SpecSession

fail_in = ctypes.c_int.in_dll(ctypes.CDLL(None), "fail_in")
one, other = [5, *range(10, 80), *range(10, 80)], [7, *range(20, 90)]
options = dict(n_ctx=512, n_threads=1)
with SpecSession(sys.argv[1], None, **options) as session:
    expected = session.generate(other, max_tokens=10).tokens
for n in range(300):
    with SpecSession(sys.argv[1], None, cache_ram=-1, **options) as session:
        session.generate(one, max_tokens=2)
        session.generate(other, max_tokens=2)
        gc.disable()
        fail_in.value = n
        try:
            session.generate([*one[:70], 9], max_tokens=1)
        except MemoryError:
            pass
        failed, fail_in.value = fail_in.value < 0, -1
        gc.enable()
        assert session.generate(other, max_tokens=10).tokens == expected, n
    if not failed:
        break
print(n)
"""


@needs_compiler
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer has its own malloc")
@pytest.mark.parametrize("kind", ["dense", "hybrid", "sliding window"])
def test_a_session_works_after_any_failed_allocation_of_the_cache(
    tmp_path: Path, kind: str
) -> None:
    """The allocation fails while a conversation is replaced by one that comes from a copy."""
    library = compiled("failing_malloc", tmp_path)
    said = run_with(library, FAILING, str(WRITERS[kind](tmp_path / "random.gguf")))
    assert 5 < int(said) < 299


@pytest.mark.parametrize("cache_ram", [-2, 1.5, "1", True])
def test_bad_cache_ram_values_are_refused(open_session: Open, cache_ram: Any) -> None:
    with pytest.raises(ArgumentError, match="cache_ram must be"):
        open_session(cache_ram=cache_ram)
