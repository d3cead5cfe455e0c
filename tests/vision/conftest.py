from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mtmd_reference import MtmdReference
from seeing import open_seeing
from specllama import SpecSession
from vision_models import WRITERS, Part, VisionModel

Expect = Callable[[Sequence[Part], int], list[int]]


@pytest.fixture(scope="session", params=WRITERS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    """A vision model of each kind."""
    folder: Path = tmp_path_factory.mktemp("models")
    return WRITERS[request.param](folder)


@pytest.fixture(scope="session")
def expect(model: VisionModel) -> Iterator[Expect]:
    """Returns the answer of llama-cpp-python's own use of libmtmd."""
    with MtmdReference(model) as reference:
        yield reference.answer


@pytest.fixture
def seeing(model: VisionModel) -> Iterator[Callable[..., SpecSession]]:
    """Opens sessions with the model and its projector."""
    sessions: list[SpecSession] = []

    def open_one(draft: Any = None, **options: Any) -> SpecSession:
        sessions.append(open_seeing(model, draft, **options))
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()
