"""What a model will take is told before it is loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from random_model import write_hybrid, write_hybrid_with_snapshots, write_recurrent
from specllama import OutOfMemoryError, SpecSession
from specllama.session import BUNDLED_DRAFT

LOAD = """
import sys
from specllama import SpecSession, _core
_core.set_verbose(True)
SpecSession(sys.argv[1], "ngram", spec_length=8, n_ctx=64, n_seq=3, n_threads=1).close()
"""


def refusal(model: Path) -> str:
    """What is said of a context that no machine has room for."""
    with pytest.raises(OutOfMemoryError) as caught:
        SpecSession(model, "ngram", spec_length=8, n_ctx=1 << 24, n_batch=8192, n_seq=64)
    return str(caught.value)


@pytest.mark.parametrize("write", [write_recurrent, write_hybrid, write_hybrid_with_snapshots])
def test_recurrent_states_are_counted(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    """As llama.cpp counts them when it allocates them."""
    model = write(tmp_path / "model.gguf")
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(model)],
        capture_output=True,
        errors="replace",
        check=True,
        env=os.environ | {"SPECLLAMA_CACHE": str(tmp_path)},
    )
    (found,) = re.findall(r"size = +([\d.]+) MiB \( *3 cells, .* rs_seq\)", run.stderr)
    told = re.search(r"states (\d+) MiB", refusal(model))
    assert told is not None
    # There for 3 requests, here for 64.
    assert int(told[1]) == pytest.approx(float(found) / 3 * 64, abs=1.0)


def test_a_device_is_named(tmp_path: Path) -> None:
    for options in ({"device": "GPU9"}, {"draft": BUNDLED_DRAFT, "draft_device": "GPU9"}):
        with pytest.raises(ValueError, match=r'no device "GPU9"; there are: .*CPU, and none'):
            SpecSession(None, **({"draft": "ngram"} | options))
    for name in ("none", "CPU"):
        with SpecSession(
            None, BUNDLED_DRAFT, device=name, draft_device=name, exact=True
        ) as session:
            assert session.generate("import", max_tokens=3).stats.exact
