"""Draft models in other types: which files are converted, and how long the copies are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from blocks import KINDS, write_block, write_target
from heads import write_eagle3
from prediction_files import write_own, write_side
from random_model import EOS, words, write_dense
from rewriting import rewrite, split
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, ModelError, SpecSession, _core
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

PROMPT = "import os\n\n\nclass Reader:\n    def __init__(self, path):\n"
NO_END: dict[str, Any] = {"logit_bias": {EOS: -100.0}}
PLAIN: dict[str, Any] = {"n_threads": 1, "n_gpu_layers": 0, "n_ctx": 256}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def copies(cache: Path) -> list[Path]:
    return sorted((cache / "drafts").glob("*"))


def types_in(path: Path) -> set[str]:
    return {one.tensor_type.name for one in gguf.GGUFReader(path).tensors if one.shape.size > 1}


@pytest.mark.parametrize("kind", ["q4_0", "q4_1", "iq4_nl"])
def test_a_converted_draft_changes_no_token(open_session: Open, cache: Path, kind: str) -> None:
    exact: dict[str, Any] = {"exact": EXACT_HERE, "kv_type": None}
    session = open_session(draft=BUNDLED_DRAFT, draft_type=kind, **exact)
    plain = open_session(draft=None, **exact)
    (copy,) = copies(cache)
    assert types_in(copy) == {kind.upper()}
    for temperature in (0.0, 0.8):
        how: dict[str, Any] = {"max_tokens": 60, "temperature": temperature, "seed": 5}
        found = session.generate(PROMPT, **how)
        assert found.tokens == plain.generate(PROMPT, **how).tokens
        assert found.stats.accepted > 5


def test_a_draft_that_has_the_requested_type_is_not_converted(
    open_session: Open, cache: Path
) -> None:
    open_session(draft=BUNDLED_DRAFT, draft_type="q8_0")
    open_session(draft=BUNDLED_DRAFT, draft_type="keep")
    assert copies(cache) == []


def test_auto_draft_type_does_not_convert_a_small_draft(open_session: Open, cache: Path) -> None:
    open_session(draft=BUNDLED_DRAFT)
    assert copies(cache) == []
    assert list(cache.glob("*.types")) == []  # nothing is measured for it


def test_a_draft_is_converted_only_once(
    open_session: Open, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    open_session(draft=BUNDLED_DRAFT, draft_type="q4_0").close()
    (copy,) = copies(cache)
    assert "Converted the draft model in " in capfd.readouterr().err
    made = copy.stat().st_ino
    os.utime(copy, (1, 1))
    open_session(draft=BUNDLED_DRAFT, draft_type="q4_0")
    assert capfd.readouterr().err == ""
    assert [one.stat().st_ino for one in copies(cache)] == [made]
    assert copy.stat().st_mtime > 1  # it was marked as used


def test_another_draft_file_of_the_same_name_size_and_time_gets_its_own_copy(
    open_session: Open, cache: Path, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.gguf"
    target = write_dense(tmp_path / "target.gguf")
    for seed in (1, 2):
        write_dense(draft, seed=seed)
        os.utime(draft, (1, 1))
        open_session(target, draft, draft_type="q4_0")
    assert len(copies(cache)) == 2


@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_a_damaged_converted_copy_is_made_again(
    open_session: Open, cache: Path, damage: str
) -> None:
    open_session(draft=BUNDLED_DRAFT, draft_type="q4_0").close()
    (copy,) = copies(cache)
    whole = copy.read_bytes()
    if damage == "cut":
        copy.write_bytes(whole[: len(whole) // 2])
    elif damage == "other":
        shutil.copy(BUNDLED_MODEL, copy)
    else:
        copy.write_bytes(b"")
    open_session(draft=BUNDLED_DRAFT, draft_type="q4_0")
    assert copy.read_bytes() == whole


def test_a_split_draft_is_converted_to_one_file(
    open_session: Open, cache: Path, tmp_path: Path
) -> None:
    first, *_ = split(BUNDLED_DRAFT, tmp_path / "parts" / "draft.gguf", "llama", 5)
    session = open_session(draft=first, draft_type="q4_0")
    (copy,) = copies(cache)
    assert types_in(copy) == {"Q4_0"}
    assert session.generate(PROMPT, max_tokens=30).stats.accepted > 0


def head(folder: Path, kind: str) -> tuple[Path, Path]:
    """Write a target, and a head or a block drafter for it."""
    if kind == "eagle3":
        return write_dense(folder / "target.gguf"), write_eagle3(folder / "draft.gguf")
    if kind == "mtp":
        name = "deepseek2 with prediction"
        return write_own(folder, name), write_side(folder, name)
    return write_target(folder / "target.gguf", "llama"), write_block(folder / "draft.gguf", kind)


@pytest.mark.parametrize("kind", ["eagle3", "mtp", *KINDS])
def test_a_converted_head_changes_no_token(
    open_session: Open, cache: Path, tmp_path: Path, kind: str
) -> None:
    target, draft = head(tmp_path, kind)
    exact: dict[str, Any] = {"exact": EXACT_HERE, "kv_type": None}
    session = open_session(target, draft, draft_type="q4_0", **exact)
    assert len(copies(cache)) == 1
    prompt = [1, *words(40, seed=3)]
    found = session.generate(prompt, max_tokens=40, **NO_END)
    assert (
        found.tokens
        == open_session(target, None, **exact).generate(prompt, max_tokens=40, **NO_END).tokens
    )
    assert found.stats.drafted > 20
    assert found.stats.drafter_errors == 0


def test_two_processes_can_convert_a_draft_at_once(cache: Path) -> None:
    script = (
        "from specllama import SpecSession; from specllama.session import BUNDLED_DRAFT\n"
        "with SpecSession(None, BUNDLED_DRAFT, draft_type='q4_0', n_threads=1, n_ctx=64) as one:\n"
        "    print(len(one.generate('import', max_tokens=5).tokens))\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [one.communicate(timeout=60)[0] for one in started] == ["5\n", "5\n"]
    assert len(copies(cache)) == 1


def test_ctrl_c_during_a_conversion_leaves_no_copy(cache: Path) -> None:
    def interrupt(stage: str, fraction: float) -> None:
        raise KeyboardInterrupt

    options: dict[str, Any] = {"draft_type": "q4_0", **PLAIN}
    with pytest.raises(KeyboardInterrupt):
        SpecSession(None, BUNDLED_DRAFT, progress=interrupt, **options)
    assert copies(cache) == []
    SpecSession(None, BUNDLED_DRAFT, **options).close()
    assert len(copies(cache)) == 1


def test_an_unwritable_draft_cache_is_an_error_only_if_a_type_is_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError, match=r"Cannot convert .*draft-q8_0.gguf to q4_0: Not a dir"):
        SpecSession(None, BUNDLED_DRAFT, draft_type="q4_0", **PLAIN)
    SpecSession(None, BUNDLED_DRAFT, **PLAIN).close()


def test_an_unknown_draft_type_is_refused() -> None:
    with pytest.raises(ArgumentError, match="draft_type must be auto, keep, q4_0, q4_1, q8_0 or"):
        SpecSession(None, BUNDLED_DRAFT, draft_type="q5_0", **PLAIN)


def write_large(path: Path, mebibytes: int) -> Path:
    """Write the bundled draft model with all-zero Q5_0 feed-forward matrices of so many MiB."""
    reader = gguf.GGUFReader(BUNDLED_DRAFT)
    prefix = "llama."
    width = reader.fields[prefix + "embedding_length"].contents()
    n_layers = reader.fields[prefix + "block_count"].contents()
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q5_0]
    n_ffn = (mebibytes << 20) // (3 * n_layers * width // block * size) // block * block
    tensors = {}
    for layer in range(n_layers):
        for name, rows, columns in (
            ("ffn_gate", n_ffn, width), ("ffn_up", n_ffn, width), ("ffn_down", width, n_ffn),
        ):  # fmt: skip
            zeros = np.zeros((rows, columns // block * size), np.uint8)
            tensors[f"blk.{layer}.{name}.weight"] = zeros
    kinds = dict.fromkeys(tensors, gguf.GGMLQuantizationType.Q5_0)
    rewrite(BUNDLED_DRAFT, path, {prefix + "feed_forward_length": n_ffn}, tensors, kinds)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large(tmp_path_factory.mktemp("large") / "draft.gguf", 20)


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large(tmp_path_factory.mktemp("large") / "target.gguf", 100)


@pytest.fixture
def believe(cache: Path, large: Path) -> Callable[..., None]:
    """Plants measured times of weight types for the next sessions."""

    def plant(**seconds: float) -> None:
        _core.slow_types(str(large))
        (file,) = cache.glob("*.types")
        key, *_ = file.read_text().splitlines()
        lines = [f"{kind} {1e-10 * time}" for kind, time in seconds.items()]
        file.write_text("\n".join([key, *lines]))

    return plant


def test_auto_draft_type_is_the_type_measured_as_fastest(
    open_session: Open, cache: Path, large: Path, larger: Path, believe: Callable[..., None]
) -> None:
    believe(q5_0=2, q4_0=1, q4_1=1.5, q8_0=0.5)
    open_session(larger, large)
    (copy,) = copies(cache)
    assert types_in(copy) == {"Q8_0"}


def test_auto_draft_type_converts_nothing_for_a_small_gain(
    open_session: Open, cache: Path, large: Path, larger: Path, believe: Callable[..., None]
) -> None:
    believe(q5_0=1.1, q4_0=1, q4_1=1, q8_0=1)
    open_session(larger, large)
    assert copies(cache) == []


def test_auto_draft_type_converts_no_draft_above_a_quarter_of_the_target(
    open_session: Open, cache: Path, large: Path, believe: Callable[..., None]
) -> None:
    believe(q5_0=2, q4_0=1, q4_1=1, q8_0=1)
    open_session(large, large)
    assert copies(cache) == []


def test_slow_weight_types_are_reported_with_the_gain_of_faster_ones(
    large: Path, believe: Callable[..., None]
) -> None:
    believe(q5_0=2, q4_0=1, q4_1=1, q8_0=1.2)
    said = _core.slow_types(str(large))
    assert said.startswith("Its q5_0 matrices (9")
    assert said.endswith("; a file in q4_0 would decode 2.0 times as fast, in q8_0 1.7 times.")


def test_weight_types_as_slow_as_they_are_large_are_not_reported_as_slow(
    large: Path, believe: Callable[..., None]
) -> None:
    believe(q5_0=1.3, q4_0=1, q4_1=1.1, q8_0=1.9)
    assert _core.slow_types(str(large)) == ""
