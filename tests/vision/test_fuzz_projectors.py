"""Mutated projector files are refused or read images, and never end the process."""

from __future__ import annotations

from pathlib import Path
from random import Random

import fuzz
import mutations
import pytest
from seeing import answer, open_seeing
from specllama import _core
from vision_models import WRITERS, VisionModel, picture


def see(rng: Random, model: VisionModel) -> None:
    with open_seeing(model, n_ctx=256) as session:
        height, width = (8 * rng.randrange(1, 12) for _ in range(2))
        answer(session, ["ab", picture(rng.randrange(9), height, width), "cd"], 3)


def try_case(index: int, folder: Path) -> None:
    rng = fuzz.case("projectors", index)
    name = rng.choice([*WRITERS])
    place = folder / name
    if not place.exists():
        place.mkdir()
        WRITERS[name](place)
    text, projector = sorted(place.glob("*.gguf"), key=lambda path: "mmproj" in path.name)
    mutated = folder / "mutated.gguf"
    fuzz.note(name, mutations.mutate(projector, mutated, rng))
    for attempt in (
        lambda: _core.read_projector(str(mutated)),
        lambda: see(rng, VisionModel(text, mutated)),
    ):
        with fuzz.refusals_allowed():
            attempt()


@pytest.mark.parametrize("n_cases", fuzz.sizes(1000))
def test_mutated_projectors_never_end_the_process(n_cases: int, tmp_path: Path) -> None:
    assert fuzz.failures(__file__, n_cases, tmp_path) == []
