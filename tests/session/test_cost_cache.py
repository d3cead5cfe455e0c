"""Decode costs are kept from one session to the next."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from session_options import Open
from specllama import SpecSession
from specllama.model.loaded_model import backend_of
from specllama.session import BUNDLED_DRAFT


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def curve(session: SpecSession) -> list[float]:
    """Return the decode costs that a session knows when its answer has a second token."""
    return session.generate("import", max_tokens=2).stats.decode_seconds


def widths(seconds: list[float]) -> set[int]:
    """Return the widths of known cost."""
    return {n for n, one in enumerate(seconds, 1) if one > 0}


def test_learned_curves_are_saved_per_configuration(open_session: Open, cache: Path) -> None:
    session = open_session(spec_length="auto")
    learned = session.generate("import os\n" * 8, max_tokens=100).stats.decode_seconds
    assert learned[0] > 0
    assert not list(cache.glob("*.curve"))
    session.close()
    assert len(list(cache.glob("*.curve"))) == 1
    # Other options have other costs.
    with open_session(spec_length="auto", kv_type="f16") as other:
        curve(other)
    assert len(list(cache.glob("*.curve"))) == 2


@pytest.mark.parametrize("options", [{}, {"draft": BUNDLED_DRAFT}, {"n_ctx": 8}, {"n_batch": 3}])
def test_a_session_without_a_saved_curve_measures_widths(
    open_session: Open, cache: Path, options: dict[str, Any]
) -> None:
    session = open_session(spec_length="auto", **options)
    prompt = session.tokenize("import")
    generation = session.generate(prompt, max_tokens=4)
    measured = widths(generation.stats.decode_seconds)
    most = min(options.get("n_ctx", 65), options.get("n_batch", 65))
    # A slow or busy machine has time for fewer widths.
    wanted = {n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most}
    assert {n for n in wanted if n <= max(8, *measured)} <= measured
    assert max(measured) <= most
    # The measured decodes do not change the text.
    assert generation.tokens == open_session(None).generate("import", max_tokens=4).tokens


@pytest.mark.parametrize("n_seq", [1, 3])
def test_the_first_token_does_not_wait_for_measurements(
    open_session: Open, cache: Path, n_seq: int
) -> None:
    session = open_session(spec_length="auto", n_seq=n_seq)
    stream = session.stream("import", max_tokens=4)
    next(stream)
    stream.close()
    assert widths(stream.stats.decode_seconds) == set()
    assert {1, 2, 4} <= widths(curve(session))


def test_a_long_prompt_is_read_after_the_measurements(open_session: Open, cache: Path) -> None:
    """Decodes after the prompt would include the cost of its context."""
    session = open_session(spec_length="auto", n_ctx=1024)
    prompt = session.tokenize("import")
    long = session.generate(prompt * (600 // len(prompt)), max_tokens=1)
    assert {1, 2, 4} <= widths(long.stats.decode_seconds)


def test_a_long_state_is_loaded_after_the_measurements(
    open_session: Open, cache: Path, tmp_path: Path
) -> None:
    first = open_session(None, n_ctx=1024)
    prompt = first.tokenize("import")
    first.generate(prompt * (600 // len(prompt)), max_tokens=2)
    first.save_state(tmp_path / "long.state")
    session = open_session(spec_length="auto", n_ctx=1024)
    assert session.load_state(tmp_path / "long.state") > 512
    known = session.generate(prompt, max_tokens=1).stats.decode_seconds
    assert {1, 2, 4} <= widths(known)


def test_nothing_is_drafted_before_the_measurements(open_session: Open, cache: Path) -> None:
    """Even if another request reads its prompt meanwhile."""
    session = open_session(spec_length="auto", n_seq=2, n_batch=8)
    prompt = session.tokenize("import")
    early, late = session.stream(prompt, max_tokens=40), session.stream(prompt * 60, max_tokens=1)
    next(early)
    next(early)
    early.close()
    assert late.stats.generated_tokens == 0
    late.close()
    assert {1, 2, 4} <= widths(early.stats.decode_seconds)


def test_a_beam_search_measures(open_session: Open, cache: Path) -> None:
    session = open_session(spec_length="auto")
    session.beam_search("import", n_beams=2, max_tokens=2)
    session.close()
    (file,) = cache.glob("*.curve")
    _, _, *seconds = file.read_text().splitlines()
    assert {1, 2, 4} <= widths([float(one) for one in seconds])


def test_a_session_measures_when_it_is_asked_for_its_costs(open_session: Open, cache: Path) -> None:
    """As a server is, by clients that draft."""
    session = open_session(spec_length="auto")
    stream = session.stream("import", max_tokens=4)
    assert {1, 2, 4} <= widths(backend_of(session).decode_seconds())
    stream.close()
    plain = open_session(None).generate("import", max_tokens=4)
    assert session.generate("import", max_tokens=4).tokens == plain.tokens


def test_a_saved_curve_is_not_measured_again(open_session: Open, cache: Path) -> None:
    with open_session(spec_length="auto") as session:
        curve(session)
    (file,) = cache.glob("*.curve")
    key, *_ = file.read_text().splitlines()
    file.write_text(f"{key}\n0 0 0\n0.125\n")
    known = curve(open_session(spec_length="auto"))
    assert widths(known) == {1}


@pytest.mark.parametrize("part", [0.02, 50.0])
def test_an_outdated_curve_is_measured_again(open_session: Open, cache: Path, part: float) -> None:
    """As after a session on a busy machine: wider decodes seem much cheaper or more expensive."""
    with open_session(spec_length="auto") as session:
        curve(session)
    (file,) = cache.glob("*.curve")
    key, *_ = file.read_text().splitlines()
    points = "\n".join(str(0.001 if n == 1 else 0.001 * n * part) for n in range(1, 66))
    file.write_text(f"{key}\n0 0 0\n{points}\n")
    known = curve(open_session(spec_length="auto"))
    # On a busy machine one decode may take any time, but not all can equal the saved ones.
    ratios = [known[n - 1] / (known[0] * n * part) for n in (2, 4, 8, 16)]
    assert min(ratios) > 0
    assert any(not 0.5 < ratio < 2 for ratio in ratios)


def test_a_draft_model_has_its_own_curve(open_session: Open, cache: Path) -> None:
    with open_session(draft=BUNDLED_DRAFT, spec_length="auto") as session:
        session.generate("import os\n" * 8, max_tokens=100)
    assert len(list(cache.glob("*.curve"))) == 2


Record: TypeAlias = tuple[Path, str, list[float]]
"""A file, its key, and its numbers: the net gain of a draft model, and of each kind of its tokens
the log-odds that one is right, and how well these are known."""


@pytest.fixture
def answer(open_session: Open, cache: Path) -> Callable[[], Record]:
    """Answers by a session of its own, and reads what it knows of its draft model."""

    def record() -> Record:
        with open_session(draft=BUNDLED_DRAFT, spec_length="auto") as session:
            session.generate("def fibonacci(n):", max_tokens=40)
        (file,) = cache.glob("*.pair")
        key, *numbers = file.read_text().splitlines()
        return file, key, [float(number) for number in numbers]

    return record


@pytest.mark.parametrize("seconds", [1e6, -1e6])
def test_a_session_continues_with_the_net_gain_of_earlier_ones(
    answer: Callable[[], Record], seconds: float
) -> None:
    file, key, _ = answer()
    file.write_text(f"{key}\n{seconds}\n")
    *_, (after, *_) = answer()
    assert 0.8 < after / seconds < 1.01


def test_a_session_continues_with_the_acceptance_rates_of_earlier_ones(
    answer: Callable[[], Record],
) -> None:
    file, key, (_, *rates) = answer()
    known = [-3.0, 100.0] * (len(rates) // 2)
    file.write_text("\n".join(map(str, [key, -1e6, *known])))  # so that it is not asked
    *_, (_, *after) = answer()
    assert after == known


@pytest.mark.parametrize(
    "damage", [[-3.0, 100.0], [-3.0, -1.0] * 44, [1e9, 1.0] * 44, [-3.0, 1e9] * 44]
)
def test_damaged_acceptance_rates_are_ignored(
    answer: Callable[[], Record], damage: list[float]
) -> None:
    file, key, (_, *rates) = answer()
    assert len(rates) == 2 * 44
    file.write_text("\n".join(map(str, [key, -1e6, *damage])))
    *_, (_, *after) = answer()
    assert [information for information in after[1::2] if information > 0] == []
    assert max(map(abs, after)) < 20


@pytest.mark.parametrize("damage", ["", "other key\n1 2\n3\n", "\x00\xff" * 50])
def test_a_damaged_curve_file_is_ignored(open_session: Open, cache: Path, damage: str) -> None:
    with open_session(spec_length="auto") as session:
        session.generate("import os\n" * 8, max_tokens=60)
    (file,) = cache.glob("*.curve")
    key = file.read_text().splitlines()[0]
    for text in (damage, key, f"{key}\nnan", f"{key}\n0 0 0\nnan\n-1\n"):
        file.write_text(text)
        with open_session(spec_length="auto") as session:
            assert session.generate("import os", max_tokens=20).stats.generated_tokens == 20


def test_an_unwritable_cache_folder_is_not_an_error(
    open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "file"))
    with open_session(spec_length="auto") as session:
        session.generate("import os", max_tokens=20)
    assert os.listdir(tmp_path) == ["file"]


def pipe(file: Path) -> None:
    os.mkfifo(file)


def endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def huge(file: Path) -> None:
    file.touch()
    os.truncate(file, 1 << 40)


@pytest.mark.parametrize("put", [pipe, endless, huge, Path.mkdir])
def test_pipes_and_huge_files_are_ignored_as_curves(
    open_session: Open, cache: Path, put: Callable[[Path], None]
) -> None:
    with open_session(spec_length="auto") as session:
        curve(session)
    (file,) = cache.glob("*.curve")
    file.unlink()
    put(file)
    with open_session(spec_length="auto") as session:
        assert session.generate("import os", max_tokens=20).stats.generated_tokens == 20
    # The file is replaced by the measured costs; a folder stays. No other file is left.
    assert list(cache.iterdir()) == [file]
    assert file.is_dir() or (file.is_file() and not file.is_symlink())
    assert file.stat().st_size < 1 << 20
