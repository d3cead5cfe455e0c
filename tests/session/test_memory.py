"""A session's memory of earlier requests gives fewer rounds and the same tokens."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from serving import serve
from session_options import EXACT, Open, open_exact
from specllama import Drafter, SpecSession
from specllama._core import Corpus, Tokenizer
from specllama.errors import ArgumentError
from specllama.session import BUNDLED_MODEL

NAMES = ("module", "english", "cjk")


def answers(session: SpecSession, names: tuple[str, ...] = NAMES, **options: Any) -> list[Any]:
    return [session.generate(PROMPTS[name], max_tokens=100, **options) for name in names]


def from_memory(answer: Any) -> int:
    """Return the number of accepted tokens that were drafted from earlier requests."""
    accepted: int = answer.stats.by_drafter["history"][1]
    return accepted


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "seed": 3}])
@pytest.mark.parametrize("spec_length", [4, "auto"])
def test_the_memory_of_earlier_requests_changes_no_token(
    open_session: Open, open_planned: Open, sampling: dict[str, Any], spec_length: Any
) -> None:
    plain = answers(open_session(draft=None), **sampling)
    session = (open_planned if spec_length == "auto" else open_session)(memory=1)
    n_drafted = 0
    for turn in range(2):
        for answer, expected in zip(answers(session, **sampling), plain, strict=True):
            assert answer.tokens == expected.tokens
            assert answer.stats.drafter_errors == 0
            n_drafted += answer.stats.drafted
            if spec_length == 4:  # with "auto", measured times decide what is drafted later
                assert (from_memory(answer) > 20) == (turn == 1)
    assert n_drafted > 0


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "seed": 3}])
def test_the_memory_of_earlier_requests_changes_no_token_of_four_at_once(
    sampling: dict[str, Any], bundled_model: Path
) -> None:
    prompts = [PROMPTS[name] for name in (*NAMES, "module")] * 2
    options: dict[str, Any] = {"max_tokens": 80, **sampling}
    with open_exact(bundled_model, None, n_seq=4) as session:
        plain = [one.tokens for one in session.generate(prompts, **options)]
    with open_exact(bundled_model, "ngram", n_seq=4, memory=1, spec_length=4) as session:
        for _ in range(2):
            generation = session.generate(prompts, **options)
            assert [one.tokens for one in generation] == plain
        assert sum(map(from_memory, generation)) > 100


def test_the_same_request_again_takes_fewer_rounds(open_session: Open) -> None:
    session = open_session(spec_length=16, memory=1)
    first, second = answers(session), answers(session)
    for one, other in zip(first, second, strict=True):
        assert from_memory(one) == 0
        assert other.stats.rounds < 0.6 * one.stats.rounds


def test_requests_that_are_not_remembered_neither_draft_nor_are_drafted_from(
    open_session: Open,
) -> None:
    session = open_session(spec_length=4, memory=1)
    for remembered in (False, False, True, False):
        generation = session.generate(PROMPTS["english"], max_tokens=60, remember=remembered)
        assert from_memory(generation) == 0
    assert from_memory(session.generate(PROMPTS["english"], max_tokens=60)) > 10


def test_without_a_memory_nothing_is_remembered(open_session: Open) -> None:
    for options in ({}, {"memory": 0}, {"memory": "off"}, {"memory": None}):
        session = open_session(spec_length=4, **options)
        for _ in range(2):
            generation = session.generate(PROMPTS["english"], max_tokens=40)
            assert from_memory(generation) == 0


class Silent(Drafter):
    """Proposes nothing."""

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[int]:
        return []


def test_the_memory_of_earlier_requests_drafts_alone(bundled_model: Path) -> None:
    with SpecSession(bundled_model, Silent(), memory=1, spec_length=4, **EXACT) as session:
        first, second = (session.generate(PROMPTS["english"], max_tokens=60) for _ in range(2))
        assert second.tokens == first.tokens
        assert from_memory(second) > 20


def test_the_memory_of_earlier_requests_drafts_for_a_remote_target(bundled_model: Path) -> None:
    there = open_exact(bundled_model, None, verifies=True)
    options: dict[str, Any] = {"spec_length": 4, "memory": 1, "n_threads": 1}
    with (
        there,
        serve(there) as server,
        SpecSession(target=server.url, draft="ngram", **options) as here,
    ):
        first, second = answers(here), answers(here)
    for one, other in zip(first, second, strict=True):
        assert other.tokens == one.tokens
        assert from_memory(one) == 0
        assert from_memory(other) > 20


def test_the_tokens_of_a_cancelled_request_are_remembered(open_session: Open) -> None:
    session = open_session(spec_length=4, memory=1)
    stream = session.stream(PROMPTS["english"], max_tokens=60)
    for _, _chunk in zip(range(30), stream, strict=False):
        pass
    stream.close()
    generation = session.generate(PROMPTS["english"], max_tokens=60)
    assert 10 < from_memory(generation) < 35


def test_the_trace_names_the_memory(open_session: Open) -> None:
    session = open_session(spec_length=4, memory=1)
    session.generate(PROMPTS["english"], max_tokens=60)
    generation = session.generate(PROMPTS["english"], max_tokens=60, trace=True)
    assert generation.trace is not None
    assert "history " in str(generation.trace)
    page = generation.trace.to_html()
    assert "tokens in an earlier request" in page
    assert "copied from an earlier request" in page


def test_rejection_sampling_accepts_drafts_from_the_memory(bundled_model: Path) -> None:
    options: dict[str, Any] = {"temperature": 0.05, "seed": 2, "acceptance": "rejection"}
    with SpecSession(bundled_model, Silent(), memory=1, spec_length=4, **EXACT) as session:
        session.generate(PROMPTS["english"], max_tokens=60, **options)
        generation = session.generate(PROMPTS["english"], max_tokens=60, **options)
    assert from_memory(generation) > 0
    assert generation.stats.drafter_errors == 0


def test_a_memory_file_serves_the_next_session_and_is_a_corpus(
    open_session: Open, tmp_path: Path
) -> None:
    path = tmp_path / "said.memory"
    old = os.umask(0)
    try:
        with open_session(spec_length=4, memory_file=path) as session:
            first = answers(session)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    for _ in range(2):  # rewritten at the end of each session
        with open_session(spec_length=4, memory_file=path) as session:
            second = answers(session)
        for one, other in zip(first, second, strict=True):
            assert other.tokens == one.tokens
            assert from_memory(other) > 20
    tokenizer = Tokenizer(str(BUNDLED_MODEL))
    corpus = Corpus(str(path))
    assert (corpus.n_vocab, corpus.vocabulary) == (tokenizer.n_vocab, tokenizer.fingerprint)
    assert corpus.n_texts >= len(NAMES)
    generation = open_session(spec_length=4, corpus=path).generate(
        PROMPTS["english"], max_tokens=100
    )
    assert generation.stats.by_drafter["corpus"][1] > 20


def test_a_link_to_a_memory_file_stays_a_link(open_session: Open, tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(path := tmp_path / "said.memory")
    sizes = []
    for name in (path, link):
        with open_session(memory_file=name) as session:
            session.generate(PROMPTS["english"], max_tokens=4)
        sizes.append(path.stat().st_size)
    assert link.is_symlink()
    assert sizes[1] > sizes[0] > 0


def test_a_request_running_when_the_session_closes_is_written(
    open_session: Open, tmp_path: Path
) -> None:
    path = tmp_path / "said.memory"
    session = open_session(spec_length=4, memory_file=path)
    for _, _chunk in zip(range(40), session.stream(PROMPTS["english"]), strict=False):
        pass
    session.close()
    generation = open_session(spec_length=4, memory_file=path).generate(
        PROMPTS["english"], max_tokens=50
    )
    assert from_memory(generation) > 10


def test_an_unusable_memory_file_is_refused_and_unchanged(
    open_session: Open, tmp_path: Path
) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    for path, message in (
        (other, "notes.txt cannot be used for drafts: it is not a corpus"),
        (tmp_path / "none" / "said.memory", "memory_file .*none/said.memory cannot be written"),
        (tmp_path, "cannot be drafted|cannot be read|cannot be written"),
        (Path("/dev/full"), "cannot be"),
    ):
        with pytest.raises(ArgumentError, match=message):
            open_session(memory_file=path)
    assert other.read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["notes.txt"]
    with pytest.raises(ArgumentError, match=r"memory_file is .*, but memory is 0"):
        open_session(memory_file=tmp_path / "m", memory=0)
    for memory in (-1, 3585):
        with pytest.raises(ArgumentError, match=f"memory must be from 0 to 3584.*, not {memory}"):
            open_session(memory=memory)
    session = open_session(draft=None, memory_file=other)  # without drafts, it is not read
    assert session.generate("x", max_tokens=2).tokens
    session.close()
    assert other.read_text() == "mine"


def test_a_memory_file_of_another_vocabulary_is_refused(
    open_session: Open, scripted: Callable[..., Path], tmp_path: Path
) -> None:
    path = tmp_path / "said.memory"
    with SpecSession(scripted(["a", "b"]), "ngram", memory_file=path, **EXACT) as session:
        session.generate("ab", max_tokens=3)
    with pytest.raises(ArgumentError, match="built for another vocabulary"):
        open_session(memory_file=path)


def test_spec_cli_drafts_from_a_memory_file(tmp_path: Path) -> None:
    path = tmp_path / "said.memory"
    command = [
        str(Path(sys.executable).with_name("spec-cli")),
        *("-m", str(BUNDLED_MODEL), "-p", PROMPTS["english"], "-n", "60", "-t", "1", "-ngl", "0"),
        *("--draft", "ngram", "--spec-length", "4", "-kv", "q8_0", "-fa", "on", "--stats"),
        *("--memory-file", str(path)),
    ]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert second.stdout == first.stdout
    assert "by history" not in first.stderr
    assert "by history" in second.stderr
