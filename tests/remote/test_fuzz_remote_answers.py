"""A hostile or broken server cannot crash, hang or flood a session that uses its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fuzz
import pytest
from hostile_server import N_VOCAB, REPLIES, hostile_server
from processes import peak_mib
from scripted_model import FIRST, write_scripted_model
from specllama import SpecllamaError, SpecSession
from specllama.remote import link

_KINDS = ("specllama", "sglang")
_MOST_MIB = 300
"""Memory (MiB) that all cases together may take: one parsed answer of 16 MiB."""

_AT_IMPORT = peak_mib()


def try_case(index: int, folder: Path, server: str, *kinds: str) -> None:
    link._FIRST_PAUSE = 0.001
    draws = fuzz.case(f"remote answers {server}", index)
    with hostile_server(draws, kinds[index] if kinds else None) as url:
        options: dict[str, Any] = {"target": url}
        if server == "sglang":
            options = {"target": f"sglang+{url}", "tokenizer": _tokenizer(folder)}
        said = ""
        try:
            with SpecSession(draft="ngram", target_timeout=1, spec_tree=2, **options) as session:
                found = session.generate([3, 4, 5], max_tokens=30, temperature=0)
                assert len(found.tokens) <= 30
                assert all(0 <= token < N_VOCAB for token in found.tokens)
        except SpecllamaError as error:
            said = str(error)
            fuzz.note(type(error).__name__, said[:500])
    assert len(said) < 1000
    assert peak_mib() < _AT_IMPORT + _MOST_MIB


def _tokenizer(folder: Path) -> Path:
    path = folder / "tokenizer.gguf"
    if not path.exists():
        write_scripted_model(path, [f"word{i} " for i in range(N_VOCAB - FIRST)])
    return path


@pytest.mark.parametrize("server", _KINDS)
@pytest.mark.parametrize("n_cases", fuzz.sizes(200))
def test_wrong_answers_are_refused_in_bounded_time_and_memory(
    n_cases: int, server: str, tmp_path: Path
) -> None:
    n = max(n_cases // len(_KINDS), 1)
    assert fuzz.failures(__file__, n, tmp_path, server) == []


def test_floods_silence_and_noise_of_a_server_are_bounded(tmp_path: Path) -> None:
    n = len(REPLIES)
    failures = fuzz.failures(__file__, n, tmp_path, "specllama", *REPLIES)
    assert failures == []
