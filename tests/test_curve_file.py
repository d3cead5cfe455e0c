"""What decodes take is kept from one session to the next."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from specllama import SpecSession
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def curve(session: SpecSession) -> list[float]:
    """What a session believes before it has decoded more than a prompt."""
    return session.generate("import", max_tokens=1).stats.decode_seconds


def test_a_session_begins_with_what_the_last_one_learned(open_session: Open, cache: Path) -> None:
    session = open_session(spec_length="auto")
    assert not any(curve(session))
    learned = session.generate("import os\n" * 8, max_tokens=100).stats.decode_seconds
    assert learned[0] > 0
    assert not cache.exists()
    session.close()
    assert len(list(cache.iterdir())) == 1
    assert curve(open_session(spec_length="auto")) == pytest.approx(learned, rel=0.3)
    # Other options, other times.
    assert not any(curve(open_session(spec_length="auto", kv_type="f16")))


def test_a_draft_model_has_a_curve_of_its_own(open_session: Open, cache: Path) -> None:
    with open_session(draft=BUNDLED_DRAFT, spec_length="auto") as session:
        session.generate("import os\n" * 8, max_tokens=100)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["", "other key\n1 2\n3\n", "\x00\xff" * 50])
def test_a_damaged_file_is_as_good_as_none(open_session: Open, cache: Path, damage: str) -> None:
    with open_session(spec_length="auto") as session:
        session.generate("import os\n" * 8, max_tokens=60)
    (file,) = cache.iterdir()
    key = file.read_text().splitlines()[0]
    for text in (damage, key, f"{key}\nnan", f"{key}\n0 0\nnan\n-1\n"):
        file.write_text(text)
        with open_session(spec_length="auto") as session:
            assert session.generate("import os", max_tokens=20).stats.generated_tokens == 20


def test_a_folder_that_cannot_be_written_is_no_error(
    open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "file"))
    with open_session(spec_length="auto") as session:
        session.generate("import os", max_tokens=20)
    assert os.listdir(tmp_path) == ["file"]
