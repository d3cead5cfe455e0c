"""Saved states save work and change no token; states that do not fit are refused."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from random_model import WRITERS, words
from session_options import EXACT_HERE
from specllama import ArgumentError, BusyError, SpecllamaError, SpecSession, _core
from specllama.formats.state_file import fingerprint
from specllama.requests.options import sampling_options
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

Open = Callable[..., SpecSession]
PROMPT = PROMPTS["module"]


@pytest.fixture
def saved(open_session: Open, tmp_path: Path) -> Path:
    session = open_session()
    session.generate(PROMPT, max_tokens=20)
    session.save_state(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    return tmp_path / "state"


@pytest.mark.parametrize("options", [{}, {"n_seq": 3, "exact": EXACT_HERE}, {"n_seq": 3}])
def test_a_saved_state_continues_a_conversation(
    open_session: Open, tmp_path: Path, options: dict[str, Any]
) -> None:
    first = open_session(**options)
    start = first.generate(PROMPT, max_tokens=20)
    first.save_state(tmp_path / "state")
    longer = first.tokenize(PROMPT) + start.tokens
    expected = open_session(**options).generate(longer, max_tokens=30)
    assert expected.stats.reused_tokens == 0
    session = open_session(**options)
    session.load_state(tmp_path / "state")
    found = session.generate(longer, max_tokens=30)
    assert found.tokens == expected.tokens
    assert found.stats.reused_tokens >= len(longer) - 2
    # It does not affect another text.
    other = session.generate("import os", max_tokens=10).tokens
    assert other == open_session(**options).generate("import os", max_tokens=10).tokens


@pytest.mark.parametrize("kind", ["bundled", *sorted(WRITERS)])
def test_a_state_saved_before_the_first_decode_is_complete(
    open_session: Open, tmp_path: Path, kind: str
) -> None:
    """A request reuses another one's memory; before its first decode, states are saved and
    loaded."""
    model = BUNDLED_MODEL if kind == "bundled" else WRITERS[kind](tmp_path / "random.gguf")
    exact: Any = EXACT_HERE if kind in ("bundled", "sliding window") else "auto"

    def core() -> Any:
        return open_session(model, None, n_seq=2, exact=exact, n_ctx=512)._backend

    common = [1, *words(80, seed=1)]
    prompt = [*common, *words(3, seed=3)]

    def start(core: Any, tokens: list[int], n: int = 8) -> Any:
        options = _core.GenerateOptions(
            max_tokens=n,
            stop=[],
            sampling=sampling_options(),
            reference=[],
            replayed=[],
            generated=[],
            cache_prompt=True,
            draft=None,
            trace=False,
        )
        return core.start(tokens, options)

    def tokens_of(stream: Any) -> list[int]:
        while stream.step() is not None:
            pass
        return list(stream.tokens)

    other = core()
    expected = tokens_of(start(other, prompt))
    tokens_of(start(other, [1, *words(250, seed=4)], 1))
    elsewhere = other.save()

    def copied(copying: Any) -> tuple[Any, Any]:
        """Return a running request, and another that reuses its beginning."""
        first = start(copying, common, 40)
        first.step()
        second = start(copying, prompt)
        assert second.stats.reused_tokens >= len(common) - 1
        return first, second

    copying, loading = core(), core()
    _, second = copied(copying)
    second.cancel()
    loading.load(*copying.save())
    assert tokens_of(start(loading, prompt)) == expected

    copying = core()
    first, second = copied(copying)
    first.cancel()
    copying.load(*elsewhere)
    assert tokens_of(second) == expected


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_saved_states_work_for_every_kind_of_model(
    open_session: Open, tmp_path: Path, kind: str
) -> None:
    model = WRITERS[kind](tmp_path / "random.gguf")
    options: dict[str, Any] = {"exact": "auto", "kv_type": None, "flash_attn": "auto"}
    prompt = [1, *range(5, 60)]
    first = open_session(model, **options)
    start = first.generate(prompt, max_tokens=20)
    first.save_state(tmp_path / "state")
    longer = prompt + start.tokens + [7]
    expected = first.generate(longer, max_tokens=20)
    session = open_session(model, **options)
    session.load_state(tmp_path / "state")
    found = session.generate(longer, max_tokens=20)
    assert found.tokens == expected.tokens
    assert found.stats.reused_tokens == expected.stats.reused_tokens > len(prompt)


def sign(path: Path, rest: bytes) -> None:
    """Write a state file with this content and a valid checksum."""
    digest = hashlib.sha256(rest).hexdigest().encode()
    path.write_bytes(b"specllama state 1 " + digest + b"\n" + rest)


def test_forged_positions_in_a_state_are_refused_and_change_nothing(
    open_session: Open, saved: Path
) -> None:
    """llama.cpp trusts positions: with two cells at one position, a later generation writes out of
    bounds. They follow the state's header, its streams and their cells, each with its sequence."""
    _, head, rest = saved.read_bytes().split(b"\n", 2)
    n_tokens = json.loads(head)["n_tokens"]
    first_cell = 4 * n_tokens + 8 + 8
    session = open_session()
    expected = session.generate(PROMPT, max_tokens=20).tokens
    for at in (0, n_tokens // 2, n_tokens - 1):
        for position in (-1, -5, 2**31 - 1, n_tokens, n_tokens + 7, 1):
            forged = bytearray(rest)
            struct.pack_into("<i", forged, first_cell + 12 * at, position)
            assert forged != rest
            sign(saved, head + b"\n" + forged)
            with pytest.raises(ArgumentError, match="does not fit the memory"):
                session.load_state(saved)
        assert session.generate(PROMPT, max_tokens=20).tokens == expected
    other = session.generate("import os", max_tokens=10).tokens
    assert other == open_session().generate("import os", max_tokens=10).tokens
    sign(saved, head + b"\n" + rest)
    session.load_state(saved)


def test_states_that_do_not_fit_are_refused(open_session: Open, saved: Path) -> None:
    content = saved.read_bytes()
    session = open_session()
    expected = session.generate(PROMPT, max_tokens=20).tokens

    def refused(message: str, by: SpecSession | None = None) -> None:
        with pytest.raises(ArgumentError, match=message):
            (by or session).load_state(saved)

    for at in (0, 25, 100, len(content) // 2, len(content) - 1):
        flipped = bytearray(content)
        flipped[at] ^= 1
        saved.write_bytes(flipped)
        refused("not a saved state" if at == 0 else "checksum does not match")
    for end in (0, 10, 80, 200, len(content) - 1):
        saved.write_bytes(content[:end])
        refused("not a saved state" if end <= 10 else "checksum does not match")
    saved.write_bytes(content + b"\0")
    refused("checksum does not match")
    for head in (
        b"x\n", b"{}\n", b'{"model": 1, "key": 1, "n_tokens": "x"}\n', b"[]\n", b"", b"5\n",
        b'{"model": "x", "key": null, "n_tokens": 1}\n', b"[" * 4000 + b"\n", b"{" + b" " * 9999,
        b'{"model": "x", "key": "\\u0000", "n_tokens": 1}\n',
    ):  # fmt: skip
        sign(saved, head)
        refused("head cannot be read")
    for n_tokens in (b"-1", b"0", b"true", b"1.0", b"null", b'"1"', b"1" * 1000):
        sign(saved, b'{"model": "x", "key": "x", "n_tokens": ' + n_tokens + b"}\n")
        refused("n_tokens is|another model")
    saved.write_bytes(content)
    # The checksum is valid, but the content does not fit the memory.
    _, rest = content.split(b"\n", 1)
    for damaged in (rest[: len(rest) // 2], rest + b"\0" * 40):
        sign(saved, damaged)
        refused("does not fit the memory|fewer than")
    saved.write_bytes(content)
    refused("another model", open_session(BUNDLED_DRAFT))
    for options in (
        {"kv_type": "f16"},
        {"kv_type": "f16", "flash_attn": False},
        {"n_seq": 2},
        {"n_seq": 2, "exact": EXACT_HERE},
    ):
        refused("another kind", open_session(**options))
    saved.unlink()
    refused("cannot be read: No such file")
    # The memory is still that of the last generation.
    again = session.generate(PROMPT, max_tokens=20)
    assert again.tokens == expected
    assert again.stats.reused_tokens == again.stats.prompt_tokens - 1


def test_saving_nothing_or_to_an_unwritable_path_is_refused(
    open_session: Open, tmp_path: Path
) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match="no state to save; generate something first"):
        session.save_state(tmp_path / "state")
    session.generate("x", max_tokens=2)
    with pytest.raises(SpecllamaError, match="cannot be written: No such file"):
        session.save_state(tmp_path / "nowhere" / "state")
    for folder in (".", "/", tmp_path):
        with pytest.raises(SpecllamaError, match="cannot be written: Is a directory"):
            session.save_state(folder)
    for use in (session.save_state, session.load_state):
        with pytest.raises(ArgumentError, match="path is empty; give a path"):
            use("")


def test_named_pipes_are_refused_as_states(open_session: Open, tmp_path: Path) -> None:
    """The pipe is not changed, and no call waits for its other end."""
    session = open_session()
    session.generate("x", max_tokens=2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecllamaError, match="cannot be written: it is not a regular file"):
        session.save_state(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(ArgumentError, match="cannot be read: it is not a regular file"):
        session.load_state(tmp_path / "pipe")


def test_loading_a_state_into_a_busy_session_is_refused(open_session: Open, saved: Path) -> None:
    session = open_session()
    stream = session.stream(PROMPT)
    next(stream)
    with pytest.raises(BusyError, match="in use"):
        session.load_state(saved)
    stream.close()
    session.load_state(saved)


def test_killing_a_process_that_saves_leaves_a_complete_state(
    open_session: Open, saved: Path
) -> None:
    script = (
        "import sys\nfrom specllama import SpecSession\n"
        "session = SpecSession(None, 'ngram', n_threads=1, n_gpu_layers=0, kv_type='q8_0',\n"
        "    flash_attn=True)\n"
        f"session.generate({PROMPT!r}, max_tokens=900)\n"
        "print('saving', flush=True)\n"
        "while True:\n    session.save_state(sys.argv[1])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(saved)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "saving\n"
    time.sleep(0.02)
    process.kill()
    process.communicate()
    open_session().load_state(saved)


def test_models_with_equal_metadata_have_different_fingerprints(tmp_path: Path) -> None:
    """As with a fine-tuned model: the size and the metadata are the same, the weights are not. A
    copy under another name is the same model."""
    model, other, same = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    metadata = bytes(1 << 20)
    model.write_bytes(metadata + b"a" * (1 << 20))
    other.write_bytes(metadata + b"b" * (1 << 20))
    same.write_bytes(model.read_bytes())
    assert fingerprint(str(model)) != fingerprint(str(other))
    assert fingerprint(str(model)) == fingerprint(str(same))
