"""A hostile or broken server cannot crash, hang or flood a session whose target it has."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import fuzz
import fuzz_child
import pytest
from hostile_server import FRAMES, N_VOCAB, REPLIES, hostile_server
from scripted_model import FIRST, write_scripted_model
from specllama import SpecllamaError, SpecSession
from specllama.remote import link

_MODES = ("lockstep", "ahead", "sglang")
_MOST_MIB = 300
"""Memory that all cases together may take: an answer of 16 MiB, taken apart."""


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("n_cases", fuzz.sizes(200))
def test_wrong_answers_are_refused_in_bounded_time_and_memory(n_cases: int, mode: str) -> None:
    fuzz_child.run(__file__, max(n_cases // len(_MODES), 1), mode, seconds=fuzz.SECONDS)


@pytest.mark.parametrize(("mode", "kinds"), [("lockstep", REPLIES), ("ahead", FRAMES)])
def test_each_kind_of_flood_silence_and_noise_is_bounded(mode: str, kinds: dict[str, Any]) -> None:
    fuzz_child.run(__file__, len(kinds), mode, *kinds, seconds=fuzz.SECONDS)


def _case(i: int) -> None:
    mode, *kinds = sys.argv[3:]
    draws = fuzz.case(f"remote answers {mode}", i)
    with hostile_server(draws, kinds[i] if kinds else None) as url:
        options: dict[str, Any] = {"target": url, "target_mode": mode}
        if mode == "sglang":
            options = {"target": f"sglang+{url}", "tokenizer": _tokenizer()}
        try:
            with SpecSession(draft="ngram", target_timeout=1, spec_tree=2, **options) as session:
                found = session.generate([3, 4, 5], max_tokens=30, temperature=0)
                assert len(found.tokens) <= 30
                assert all(0 <= token < N_VOCAB for token in found.tokens)
        except SpecllamaError as error:
            said = str(error)
            print(type(error).__name__, said[:500])
        else:
            said = ""
    assert len(said) < 1000
    assert fuzz_child.peak_mib() < _base + _MOST_MIB


def _tokenizer() -> Path:
    path = Path(tempfile.gettempdir()) / f"fuzz-remote-{N_VOCAB}.gguf"
    if not path.exists():
        write_scripted_model(path, [f"word{i} " for i in range(N_VOCAB - FIRST)])
    return path


if __name__ == "__main__":
    link._FIRST_PAUSE = 0.001
    _base = fuzz_child.peak_mib()
    fuzz_child.main(_case)
