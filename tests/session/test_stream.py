"""Streams: pieces of text, stop strings, and every way to end."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drafters import CtrlC
from numpy.typing import NDArray
from prompts import ENDLESS, PROMPTS, most_tokens
from scripted_model import BOS, FIRST
from session_options import Open
from specllama import ArgumentError, Chunk, ClosedError, Drafter, SpecSession

Script = Callable[..., Path]
PROMPT = PROMPTS["module"]
ROCKET = [bytes([byte]) for byte in "\N{ROCKET}".encode()]


class Oracle(Drafter):
    """Drafts a scripted model's next tokens."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> Iterable[int]:
        last = int(tokens[-1])
        first = FIRST if last == BOS else last + 1
        return range(first, first + max_tokens)


def joined(chunks: Iterable[Chunk]) -> tuple[str, list[int]]:
    chunks = list(chunks)
    return "".join(c.text for c in chunks), [c.token for c in chunks if c.token is not None]


@pytest.mark.here_and_served
def test_joined_chunks_equal_the_generation(open_session: Open) -> None:
    session = open_session()
    for name, prompt in PROMPTS.items():
        most = most_tokens(session, prompt, 60)
        generation = session.generate(prompt, max_tokens=most)
        chunks = list(session.stream(prompt, max_tokens=most))
        assert joined(chunks) == (generation.text, generation.tokens), name
        assert [c.finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1].finish_reason == generation.finish_reason
        assert sum(c.from_draft for c in chunks) == generation.stats.accepted


@pytest.mark.here_and_served
def test_a_finished_stream_has_its_result_and_becomes_session_last(open_session: Open) -> None:
    session = open_session()
    assert session.last is None
    stream = session.stream(PROMPT, max_tokens=20)
    assert stream.finish_reason is None
    text, tokens = joined(stream)
    assert stream.finish_reason == "length"
    result = stream.result()
    assert (result.text, result.tokens) == (text, tokens)
    assert session.last is not None
    assert session.last.tokens == tokens
    with pytest.raises(StopIteration):
        next(stream)


@pytest.mark.here_and_served
def test_an_end_inside_a_draft_ends_the_text(scripted: Script, open_session: Open) -> None:
    model = scripted([*"abcdefgh"])
    session = open_session(model, Oracle(), kv_type="f16", spec_length=6)
    found = session.generate([BOS], stop="cd", trace=True)
    assert found.text == "ab"
    assert found.trace is not None
    last = found.trace.rounds[-1]
    assert last.accepted > 0
    assert last.next is None


@pytest.mark.here_and_served
@pytest.mark.parametrize("spec_length", [1, 4])
def test_characters_of_several_tokens_are_streamed_whole(
    scripted: Script, open_session: Open, spec_length: int
) -> None:
    model = scripted(["go", *ROCKET, " up", "é"])
    session = open_session(model, Oracle(), kv_type="f16", spec_length=spec_length)
    chunks = list(session.stream([BOS]))
    assert [c.text for c in chunks if c.token] == ["go", "", "", "", "\N{ROCKET}", " up", "é"]
    assert [c.token for c in chunks if c.token] == list(range(FIRST, FIRST + 7))
    assert chunks[-1].finish_reason == "stop"


@pytest.mark.here_and_served
def test_invalid_utf8_is_replaced(scripted: Script, open_session: Open) -> None:
    def text(pieces: list[str | bytes]) -> str:
        return open_session(scripted(pieces), kv_type="f16").generate([BOS]).text

    assert text(["a", *ROCKET[:2]]) == "a\ufffd"  # the text ends inside a character
    assert text(["a", *ROCKET[:2], "b"]) == "a\ufffdb"  # another character begins inside it
    assert text([b"\xff", b"\xfe", "b"]) == "\ufffd\ufffdb"
    assert text([b"\xed", b"\xa0", b"\x80"]) == b"\xed\xa0\x80".decode(errors="replace")


@pytest.mark.here_and_served
@pytest.mark.parametrize("spec_length", [1, 3, 16])
@pytest.mark.parametrize(
    ("stop", "text", "n_tokens"),
    [
        ("d", "abc ", 3),  # inside the token " d": its blank is kept, the token is not
        ("c d", "ab", 2),
        ("ef", "abc d", 4),
        ("fg", "abc de", 5),
        ("a", "", 0),
        ("zz", "abc defghh", 8),  # never occurs, nor does its first letter
        ("hz", "abc defghh", 8),  # begins, but does not continue
        (["f", "c d"], "ab", 2),
        (["c", "bc"], "a", 1),  # both end at the same token: the one that begins first counts
        (["ab", "abc"], "", 0),  # complete before the other
        (["hhx", "hh", "h"], "abc defg", 7),
        ("abc defghh", "", 0),
    ],
)
def test_stop_strings_end_the_text_before_them(
    scripted: Script,
    open_session: Open,
    spec_length: int,
    stop: str | list[str],
    text: str,
    n_tokens: int,
) -> None:
    pieces: list[str | bytes] = ["a", "b", "c", " d", "e", "f", "g", "hh"]
    model = scripted(pieces)
    session = open_session(model, Oracle(), kv_type="f16", spec_length=spec_length)
    generation = session.generate([BOS], stop=stop)
    assert generation.text == text
    assert generation.tokens == list(range(FIRST, FIRST + n_tokens))
    assert generation.finish_reason == "stop"
    following = "abc defghh".removeprefix(text)
    given = [stop] if isinstance(stop, str) else stop
    assert generation.stop_string == next((one for one in given if following.startswith(one)), None)
    assert joined(session.stream([BOS], stop=stop)) == (text, generation.tokens)


@pytest.mark.here_and_served
def test_a_stop_string_can_be_one_character_of_several_tokens(
    scripted: Script, open_session: Open
) -> None:
    session = open_session(scripted(["a", *ROCKET, "b"]), kv_type="f16")
    generation = session.generate([BOS], stop="\N{ROCKET}")
    assert (generation.text, generation.tokens) == ("a", [FIRST])


@pytest.mark.here_and_served
def test_text_that_may_begin_a_stop_string_is_held_back(
    scripted: Script, open_session: Open
) -> None:
    session = open_session(scripted(["a", "b", "c", "x"]), None, kv_type="f16")
    # Only "x" shows that "abcd" does not follow.
    stream = session.stream([BOS], stop="abcd")
    assert next(stream).text == "a"
    assert stream.stats.generated_tokens == 4
    assert "".join(chunk.text for chunk in stream) == "bcx"
    # Held-back text is not lost if the reader leaves.
    session = open_session(scripted(["x", "a", "b", "c"]), Oracle(), kv_type="f16", spec_length=1)
    stream = session.stream([BOS], stop="bcd")
    assert next(stream).text == "x"
    assert next(stream).text == "a"
    stream.close()
    assert list(stream) == []
    assert stream.result().text == "xab"


@pytest.mark.here_and_served
def test_stop_strings_do_not_match_in_the_prompt(scripted: Script, open_session: Open) -> None:
    session = open_session(scripted(["a", "b", "c"]), kv_type="f16")
    assert session.generate([BOS, FIRST], stop="ab").text == "bc"


@pytest.mark.here_and_served
@pytest.mark.parametrize("stop", ["", ["a", ""], 5, [5], "\udc80"])
def test_bad_stop_strings_are_refused(open_session: Open, stop: object) -> None:
    with pytest.raises(ArgumentError, match="stop"):
        open_session().generate("x", stop=stop)  # type: ignore[arg-type]


def equal_to_fresh(session: SpecSession, open_session: Open, prompts: list[str]) -> None:
    for prompt in prompts:
        expected = open_session().generate(prompt, max_tokens=80).tokens
        assert session.generate(prompt, max_tokens=80).tokens == expected


FOLLOWING = [PROMPT, PROMPT + "\n\nclass", PROMPTS["json"]]


@pytest.mark.here_and_served
@pytest.mark.parametrize("spec_length", [1, 4, 16])
def test_a_session_equals_a_new_one_after_a_stop_string_in_a_draft(
    open_session: Open, spec_length: int
) -> None:
    session = open_session(spec_length=spec_length)
    text = session.generate(PROMPT, max_tokens=120).text
    for stop in {text[i : i + 5] for i in range(20, len(text) - 5, 37)}:
        generation = session.generate(PROMPT, max_tokens=120, stop=stop)
        assert generation.finish_reason == "stop"
        assert generation.text == text[: text.index(stop)]
        equal_to_fresh(session, open_session, FOLLOWING[:1])
    equal_to_fresh(session, open_session, FOLLOWING)


@pytest.mark.here_and_served
@pytest.mark.parametrize("max_tokens", [1, 2, 5, 17])
def test_a_session_equals_a_new_one_after_max_tokens(open_session: Open, max_tokens: int) -> None:
    session = open_session(spec_length=16)
    assert len(session.generate(PROMPT, max_tokens=max_tokens).tokens) == max_tokens
    equal_to_fresh(session, open_session, FOLLOWING)


@pytest.mark.here_and_served
@pytest.mark.parametrize("n_read", [0, 1, 7])
@pytest.mark.parametrize("how", ["close", "drop", "keep"])
def test_a_session_equals_a_new_one_after_an_abandoned_stream(
    open_session: Open, n_read: int, how: str
) -> None:
    session = open_session(spec_length=8)
    stream = session.stream(PROMPT)
    for _ in range(n_read):
        next(stream)
    if how == "close":
        stream.close()
        assert list(stream) == []
        assert stream.result().finish_reason is None
    elif how == "drop":
        del stream
        gc.collect()
    equal_to_fresh(session, open_session, FOLLOWING)
    if how == "keep":
        with pytest.raises(ClosedError, match="began another generation"):
            list(stream)


def test_a_session_equals_a_new_one_after_an_interrupted_prefill(open_session: Open) -> None:
    patience = [0.5]

    def progress(stage: str, done: float) -> None:
        if stage == "prefill" and done > patience[0]:
            raise KeyboardInterrupt

    session = open_session(n_batch=16, progress=progress)
    with pytest.raises(KeyboardInterrupt):
        session.generate(PROMPT)
    patience[0] = 2.0
    again = session.generate(PROMPT, max_tokens=80)
    assert 0 < again.stats.reused_tokens < again.stats.prompt_tokens - 1
    equal_to_fresh(session, open_session, FOLLOWING)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also if this process was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.here_and_served
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_generation_between_rounds(open_session: Open) -> None:
    session = open_session()
    expected = session.generate(PROMPT, max_tokens=1500).tokens
    for delay in (0.05, 0.1, 0.2):
        timer = threading.Timer(delay, _thread.interrupt_main)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            for _ in range(1000):
                session.generate(PROMPT, max_tokens=1500)
        timer.join()
        # The generated tokens are not lost.
        assert session.last is not None
        assert session.last.tokens == expected[: len(session.last.tokens)]
        equal_to_fresh(session, open_session, FOLLOWING)


class Ending(Drafter):
    """Ctrl-C comes in its call at a request's end."""

    def end(self, sequence: int) -> None:
        raise KeyboardInterrupt

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return []


def test_ctrl_c_while_a_session_closes_still_closes_it(open_session: Open) -> None:
    """Its objects are freed."""
    drafter: Drafter | None = Ending()
    held = weakref.ref(drafter)
    session = open_session(draft=drafter)
    stream = session.stream(PROMPT, **ENDLESS)
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        session.close()
    with pytest.raises(ClosedError):
        session.generate(PROMPT)
    drafter = None
    gc.collect()
    assert held() is None


@pytest.mark.here_and_served
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("several", [{"n": 4}, {"prompt": [PROMPT] * 4}])
def test_ctrl_c_ends_several_requests(open_session: Open, several: dict[str, Any]) -> None:
    """Two have begun by then, the others wait. (The second may have no token yet.)"""
    session = open_session(draft=CtrlC(20), n_seq=2)
    with pytest.raises(KeyboardInterrupt):
        session.generate(**{"prompt": PROMPT, "max_tokens": 1500, **ENDLESS, **several})
    assert session.last is not None
    assert len(session.last.tokens) < 100
    assert session.generate(PROMPT, max_tokens=8, **ENDLESS).tokens


def test_ctrl_c_ends_requests_that_wait_for_the_queue(open_session: Open) -> None:
    session = open_session(draft=CtrlC(20), n_seq=2, max_queue=0)
    with pytest.raises(KeyboardInterrupt):
        session.generate([PROMPT] * 6, max_tokens=1500, **ENDLESS)
    assert session.last is not None
    assert session.last.tokens
