"""Mutated model files: they are refused or run, and never end the process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import fuzz
import mutations
import pytest
from random_model import write_dense
from specllama import SpecSession, _core

SMALL: dict[str, Any] = {"n_gpu_layers": 0, "n_threads": 1, "n_ctx": 64, "spec_length": 3}


def generate(rng: Random, model: Path, draft: Any, **options: Any) -> None:
    with SpecSession(model, draft, **SMALL | options) as session:
        prompt = [rng.randrange(min(session.n_vocab, 200)) for _ in range(rng.randrange(1, 20))]
        session.generate(prompt, max_tokens=6, ignore_eos=True, temperature=rng.choice([0, 1]))
        session.generate("a \u017c\u20ac w1 \0 w2 \N{GRINNING FACE}", max_tokens=2)


def try_case(index: int, folder: Path) -> None:
    rng = fuzz.case("files", index)
    if not (sound := folder / "sound.gguf").exists():
        write_dense(sound)
    source = mutations.original(folder, rng)
    model = folder / "mutated.gguf"
    fuzz.note(source.stem, mutations.mutate(source, model, rng))
    draft = rng.choice(["auto", "mtp", "ngram", None])
    for attempt in (
        lambda: _core.read_model_file(str(model)),
        lambda: _core.brings_head(str(model)),
        lambda: generate(rng, model, draft, n_seq=rng.choice([1, 2])),
        lambda: generate(rng, sound, model),
    ):
        with fuzz.refusals_allowed():
            attempt()


@pytest.mark.parametrize("n_cases", fuzz.sizes(500))
def test_mutated_model_files_never_end_the_process(n_cases: int, tmp_path: Path) -> None:
    assert fuzz.failures(__file__, n_cases, tmp_path) == []
