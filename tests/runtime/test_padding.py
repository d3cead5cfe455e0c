"""Decodes are padded if a change of their width costs much; tokens do not change."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from c_library import compiled, needs_compiler
from folders import SUPPORT
from random_model import WRITERS
from session_options import EXACT

pytestmark = needs_compiler

SCRIPT = SUPPORT / "padding.py"


@dataclass
class Answers:
    """The answers of several requests.

    Attributes:
        distances: For each, the difference in nats between its first token that is not plain
            decoding's and plain decoding's token (0: no difference).
        widths: Number of tokens of each decode.
    """

    distances: list[float]
    widths: list[int]

    @property
    def n_changes(self) -> int:
        return sum(a != b for a, b in zip(self.widths, self.widths[1:], strict=False))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("recording_llama", tmp_path_factory.mktemp("library"))


def answers(library: Path, model: Path, change: float, **options: Any) -> Answers:
    arguments = [library, model, str(change), json.dumps(EXACT | options)]
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, check=True)
    return Answers(**json.loads(done.stdout))


PADDED = {"dense", "experts", "sliding window"}
"""Kinds whose memory can be rewound to any position."""


# In a shared memory, sums are rounded in another order, and a router would choose other experts.
@pytest.mark.parametrize(
    ("kind", "n_seq"),
    [*((kind, 1) for kind in WRITERS), *((kind, 4) for kind in WRITERS if kind != "experts")],
)
def test_padded_decodes_change_no_token(
    library: Path, tmp_path: Path, kind: str, n_seq: int
) -> None:
    model = WRITERS[kind](tmp_path / "random.gguf")
    near = 0.5 if n_seq > 1 and kind == "dense" else 0
    for change in (0, 0.3, 1.5):
        found = answers(library, model, change, n_seq=n_seq)
        assert max(found.distances) <= near
    if n_seq == 1 and kind in PADDED:
        assert found.n_changes < len(found.widths) / 2
