"""Models in several files, as large ones are published: the same tokens as in one file."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from random_model import write_delta_net, write_hybrid_with_snapshots
from rewriting import split
from session_options import EXACT_HERE, Open
from specllama import ModelError, OutOfMemoryError, SpecSession
from specllama.commands.spec_cli import executable


@pytest.fixture
def parts(tmp_path: Path, bundled_model: Path) -> list[Path]:
    """The bundled model, split into parts of a few tensors."""
    return split(bundled_model, tmp_path / "parts" / "model.gguf", "llama", 20)


def refusal(model: Path) -> str:
    """Return the error for a model, which is the same in Python and on the command line."""
    with pytest.raises(ModelError) as caught:
        SpecSession(model, None, n_threads=1)
    run = subprocess.run(
        [executable(), "-m", model, "-p", "x", "-n", "1", "-t", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.endswith(f"{caught.value}\n")
    assert run.stderr.count("\n") == 1
    return str(caught.value)


def test_a_split_model_gives_the_same_tokens(
    parts: list[Path], bundled_model: Path, open_session: Open
) -> None:
    assert len(parts) > 2
    options: dict[str, Any] = {"exact": EXACT_HERE, "kv_type": None}
    whole, split_up = (open_session(path, **options) for path in (bundled_model, parts[0]))
    assert split_up.cpu_kernels == whole.cpu_kernels
    for prompt in PROMPTS.values():
        expected, found = (one.generate(prompt, max_tokens=40) for one in (whole, split_up))
        assert found.tokens == expected.tokens
        assert found.stats.exact is expected.stats.exact is (EXACT_HERE is True)


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="exactness is claimed for x86-64 only"
)
@pytest.mark.parametrize(
    ("write", "architecture"), [(write_hybrid_with_snapshots, "lfm2"), (write_delta_net, "qwen35")]
)
def test_recurrent_layers_are_found_in_any_part_of_a_split_model(
    tmp_path: Path, write: Callable[[Path], Path], architecture: str, open_session: Open
) -> None:
    """The recurrent layers decide the kind of memory and the kernels."""
    model = write(tmp_path / "model.gguf")
    first, *_ = split(model, tmp_path / "parts" / "model.gguf", architecture, 3)
    options: dict[str, Any] = {"exact": True, "kv_type": None}
    whole, split_up = (open_session(path, **options) for path in (model, first))
    assert split_up.cpu_kernels == whole.cpu_kernels
    expected, found = (one.generate([1, 5, 6], max_tokens=30) for one in (whole, split_up))
    assert found.tokens == expected.tokens


def test_the_memory_estimate_counts_all_parts_of_a_split_model(
    parts: list[Path], bundled_model: Path
) -> None:
    def message(model: Path) -> str:
        with pytest.raises(OutOfMemoryError) as caught:
            SpecSession(model, None, n_ctx=1 << 24, n_batch=8192, n_seq=64)
        return str(caught.value).partition(", but")[0]  # the free memory changes

    assert message(parts[0]) == message(bundled_model)


def test_a_missing_part_of_a_split_model_is_refused(parts: list[Path]) -> None:
    parts[1].unlink()
    assert refusal(parts[0]) == (
        f"Cannot use {parts[0]} as a model: its part 2 of {len(parts)}, {parts[1]}, is missing."
    )


def test_the_error_names_the_truncated_part(parts: list[Path]) -> None:
    whole = parts[2].read_bytes()
    parts[2].write_bytes(whole[: len(whole) // 2])
    assert refusal(parts[0]).startswith(f"Cannot use {parts[2]} as a model: it is cut short: ")
    parts[2].write_bytes(b"GGUF")
    assert f"{parts[2]} as a model: its header is damaged or cut short" in refusal(parts[0])
    parts[2].write_bytes(b"")
    assert refusal(parts[0]) == f"Cannot use {parts[2]} as a model: it is empty."


def test_a_renamed_first_part_of_a_split_model_is_refused(parts: list[Path]) -> None:
    other = parts[0].with_name("model.gguf")
    shutil.copy(parts[0], other)
    assert refusal(other) == (
        f"Cannot use {other} as a model: it is the first of {len(parts)} parts of a model, but its "
        "name does not show that; restore the original names of the parts."
    )


def test_a_later_part_of_a_split_model_is_refused(parts: list[Path]) -> None:
    assert "it is part 2 of a split model; give the path of the first part" in refusal(parts[1])
