"""Mutated files of MTP layers, and mutated models next to undamaged ones: they are refused or
draft, and never end the process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import fuzz
import mutations
import pytest
from any_model import architectures
from prediction_files import write_own, write_side, write_without
from specllama import SpecSession, _core

WITH_MTP = [name for name in architectures() if name.endswith(" with prediction")]
SMALL: dict[str, Any] = {"n_gpu_layers": 0, "n_threads": 1, "n_ctx": 64, "spec_length": 3}


def generate(rng: Random, model: Path, draft: Any) -> None:
    with SpecSession(model, draft, **SMALL) as session:
        prompt = [rng.randrange(100) for _ in range(rng.randrange(1, 20))]
        session.generate(prompt, max_tokens=6, ignore_eos=True)


def try_case(index: int, folder: Path) -> None:
    rng = fuzz.case("prediction files", index)
    name = rng.choice(WITH_MTP)
    place = folder / name
    if not place.exists():
        place.mkdir()
        write_own(place, name)
        write_side(place, name)
        write_without(place, name)
    own, side, without = (place / f"{one}.gguf" for one in ("own", "mtp-side", "without"))
    source = rng.choice([own, side, without])
    mutated = folder / "mutated.gguf"
    fuzz.note(f"{name}, {source.stem}", mutations.mutate(source, mutated, rng))
    target, draft = {own: (mutated, "mtp"), side: (without, mutated), without: (mutated, side)}[
        source
    ]
    for attempt in (
        lambda: _core.read_model_file(str(mutated)),
        lambda: _core.check_head(str(side), str(mutated)),
        lambda: _core.check_head(str(mutated), str(without)),
        lambda: generate(rng, target, draft),
    ):
        with fuzz.refusals_allowed():
            attempt()


@pytest.mark.parametrize("n_cases", fuzz.sizes(200))
def test_mutated_prediction_files_never_end_the_process(n_cases: int, tmp_path: Path) -> None:
    assert fuzz.failures(__file__, n_cases, tmp_path) == []
