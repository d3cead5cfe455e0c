"""The memory that a model or a beam search needs is estimated before it starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures
from any_model import write as write_any
from c_library import compiled, needs_compiler, run_with
from random_model import (
    write_delta_net,
    write_dense,
    write_hybrid,
    write_hybrid_with_snapshots,
    write_recurrent,
)
from session_options import EXACT_HERE
from specllama import ModelError, OutOfMemoryError, SpecSession
from specllama.session import BUNDLED_DRAFT

LOAD = """
import sys
from specllama import SpecSession, _core
_core.set_verbose(True)
draft = sys.argv[2] or None
SpecSession(sys.argv[1], draft, spec_length=8, n_ctx=8192, n_seq=3, n_threads=1).close()
"""


def log(model: Path, cache: Path, draft: str | None = "ngram") -> str:
    """Return llama.cpp's log of opening a session."""
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(model), draft or ""],
        capture_output=True,
        errors="replace",
        check=True,
        env=os.environ | {"SPECLLAMA_CACHE": str(cache)},
    )
    return run.stderr


def refusal(model: Path, draft: str | None = "ngram", spec_length: int = 8) -> str:
    """Return the error for a context that fits no machine."""
    with pytest.raises(OutOfMemoryError) as caught:
        SpecSession(model, draft, spec_length=spec_length, n_ctx=1 << 24, n_batch=8192, n_seq=64)
    return str(caught.value)


def mib_of(what: str, refused: str) -> int:
    """Return the MiB that an error names for a part."""
    found = re.search(rf"{what} (\d+) MiB", refused)
    assert found is not None, refused
    return int(found[1])


@pytest.mark.parametrize("draft", [None, "ngram"])
@pytest.mark.parametrize(
    "write", [write_recurrent, write_hybrid, write_hybrid_with_snapshots, write_delta_net]
)
def test_estimate_counts_recurrent_states(
    tmp_path: Path, write: Callable[[Path], Path], draft: str | None
) -> None:
    """As llama.cpp allocates them: with snapshots only if drafts are rewound."""
    model = write(tmp_path / "model.gguf")
    (found,) = re.findall(
        r"size = +([\d.]+) MiB \( *3 cells, .* rs_seq\)", log(model, tmp_path, draft)
    )
    # The log is of 3 requests, the error of 64.
    states = mib_of("states", refusal(model, draft))
    assert states == pytest.approx(float(found) / 3 * 64, abs=1.0)


def test_estimate_counts_rows_of_logits_for_drafts(bundled_model: Path) -> None:
    """Drafts of 1 and of 8 tokens have 2 and 9 rows for each of 64 requests."""
    short, long = (mib_of("computing", refusal(bundled_model, spec_length=n)) for n in (1, 8))
    with SpecSession(bundled_model, None, n_ctx=512) as session:
        n_numbers = 2 * 64 * 7 * session.n_vocab  # counted twice
    assert long - short == pytest.approx(4 * n_numbers / (1 << 20), abs=1.0)


@pytest.mark.parametrize("write", [write_dense, write_delta_net])
def test_estimate_counts_the_kv_memory_of_attention_layers(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    """As llama.cpp allocates it."""
    model = write(tmp_path / "model.gguf")
    (found,) = re.findall(
        r"size = +([\d.]+) MiB \( *(\d+) cells, .* layers, +\d+/(\d+) seqs", log(model, tmp_path)
    )
    mib, n_cells, n_parts = map(float, found)
    kv = mib_of("KV memory for 64 times 16777216 tokens", refusal(model))
    assert kv == pytest.approx(mib / (n_cells * n_parts) * (64 << 24), rel=0.01)


OPEN = """
import os, sys
from specllama import OutOfMemoryError, SpecSession, _core

def leave(mib):
    with open(os.environ["LITTLE_MEMORY"], "w") as file:
        print(f"MemTotal: 9999999 kB\\nMemAvailable: {mib * 1024} kB", file=file)

def open_session(model):
    SpecSession(model, None, n_ctx=65536, n_threads=1, flash_attn=True).close()

os.dup2(1, 2)  # llama.cpp's output
for model in sys.argv[1:]:
    leave(1)
    try:
        open_session(model)
    except OutOfMemoryError as error:
        print(error, flush=True)
    leave(9999)
    _core.set_verbose(True)
    open_session(model)
    _core.set_verbose(False)
    print("", flush=True)
    print("next model", flush=True)
"""


@needs_compiler
def test_estimate_is_near_llama_cpps_allocation_for_every_architecture(tmp_path: Path) -> None:
    """For full attention, sliding windows and latent attention."""
    models = {
        name: write_any(tmp_path / f"{i}.gguf", name, entry)
        for i, (name, entry) in enumerate(architectures().items())
        # MiniMax 01: no tensor says which layers have attention, so too many are counted. DeepSeek
        # 4: the memory for each few tokens is not counted.
        if name.split()[0] not in ("minimax-01", "deepseek4")
    }
    library = compiled("little_memory", tmp_path)
    *said, _ = run_with(
        library, OPEN, *map(str, models.values()), LITTLE_MEMORY=str(tmp_path / "meminfo")
    ).split("next model")
    found = {}
    expected = {}
    for name, text in zip(models, said, strict=True):
        found[name] = mib_of("KV memory for 65536 tokens", text)
        expected[name] = sum(map(float, re.findall(r"KV buffer size = +([\d.]+) MiB", text)))
    # A window's memory is a multiple of 256 tokens, and the error rounds to a MiB.
    assert found == pytest.approx(expected, rel=0.03, abs=1.5)


def test_estimate_follows_the_sliding_windows_in_the_file(tmp_path: Path) -> None:
    """Layers after the end of a list have full attention; some files only say that windows exist; a
    window is at most as large as the context."""

    def needed(name: str, **values: Any) -> int:
        entry = architectures()[name]
        changed = {key.replace("__", "."): value for key, value in values.items()}
        path = write_any(
            tmp_path / "model.gguf", name, entry | {"values": entry["values"] | changed}
        )
        return mib_of("KV memory for 64 times 16777216 tokens", refusal(path, None))

    short = needed("gemma2", attention__sliding_window_pattern=[True])
    assert short == needed("gemma2", attention__sliding_window_pattern=[True, False])
    without = needed("smallthinker", attention__sliding_window=None)
    assert without == needed("smallthinker", attention__sliding_window=0)
    assert without > 3.5 * needed("smallthinker", attention__sliding_window=64)
    with pytest.raises(ModelError, match=r"its gemma2\.attention\.sliding_window is 2147483648"):
        needed("gemma2", attention__sliding_window=1 << 31)


def test_unknown_devices_are_refused_and_the_cpu_is_accepted() -> None:
    for options in ({"device": "GPU9"}, {"draft": BUNDLED_DRAFT, "draft_device": "GPU9"}):
        with pytest.raises(ValueError, match=r'no device "GPU9"; choose from: .*CPU, none'):
            SpecSession(None, **({"draft": "ngram"} | options))
    for name in ("none", "CPU"):
        with SpecSession(
            None, BUNDLED_DRAFT, device=name, draft_device=name, exact=EXACT_HERE
        ) as session:
            assert session.generate("import", max_tokens=3).stats.exact is (EXACT_HERE is True)


SEARCH = """
import os, re
from specllama import OutOfMemoryError, SpecSession

def leave(mib):
    with open(os.environ["LITTLE_MEMORY"], "w") as file:
        print(f"MemTotal: 9999999 kB\\nMemAvailable: {mib * 1024} kB", file=file)

def search():
    try:
        return str(len(session.beam_search("def f(x):", n_beams=8, max_tokens=12)))
    except OutOfMemoryError as error:
        return str(error)

session = SpecSession(None, "ngram", n_ctx=512, n_threads=1)
print(search())
leave(1)
refused = search()
print(refused)
print(len(session.generate("def f(x):", max_tokens=5).tokens))
needed = int(re.search("needs ([0-9]+)", refused)[1])
for mib in (needed, needed - 1):
    leave(mib)
    print(search())
"""


@needs_compiler
def test_a_beam_search_without_enough_memory_is_refused(tmp_path: Path) -> None:
    """The machine reports little free memory. A smaller search runs."""
    library = compiled("little_memory", tmp_path)
    said = run_with(library, SEARCH, LITTLE_MEMORY=str(tmp_path / "meminfo"))
    before, refused, other, with_room, without = said.splitlines()
    assert (before, other, with_room) == ("8", "5", "8")
    assert without.startswith("A search with 8 beams needs")
    assert re.fullmatch(
        r"A search with 8 beams needs \d+ MiB of its own \(KV memory for \d+ tokens \d+ MiB, "
        r"computing \d+ MiB\), but main memory has 1 MiB free; lower n_beams or max_tokens, or "
        r"shorten the prompt\.",
        refused,
    )
