"""Damaged layers in every kind of model that the tests can write: one sentence each, and no crash.

Each file is opened and used in a process of its own, which must end by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from heads import write_eagle3, write_glm, write_qwen
from random_model import INNER, WRITERS, write_dense
from rewriting import rewrite

KINDS: dict[str, Callable[[Path], Path]] = {
    **WRITERS,
    "MTP after a delta net": write_qwen,
    "MTP after experts": write_glm,
    "EAGLE-3": write_eagle3,
}
DRAFTS = {"MTP after a delta net": "mtp", "MTP after experts": "mtp"}

SCRIPT = """
import sys
from specllama import ModelError, SpecSession
model, draft = sys.argv[1:]
try:
    with SpecSession(model, draft, n_gpu_layers=0, n_threads=1, n_ctx=128) as session:
        print("ran", len(session.generate([1, 5, 6, 7, 5, 6, 7, 5], max_tokens=4).tokens))
except ModelError as error:
    print("refused", error)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes an undamaged file of a kind, once."""
    folder = tmp_path_factory.mktemp("whole")

    def write(kind: str) -> Path:
        path = folder / f"{kind}.gguf"
        return path if path.exists() else KINDS[kind](path)

    return write


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target of an EAGLE-3 head."""
    return write_dense(tmp_path_factory.mktemp("target") / "target.gguf")


def outcome(kind: str, path: Path, target: Path) -> str:
    """Return the output of a process that opens a file and generates with it."""
    pair = (target, path) if kind == "EAGLE-3" else (path, DRAFTS.get(kind, "ngram"))
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, pair)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_undamaged_models_of_every_kind_generate(
    kind: str, whole: Callable[[str], Path], target: Path
) -> None:
    assert outcome(kind, whole(kind), target) == "ran 4\n"


Damage = tuple[str, dict[str, Any], dict[str, Any], str]
"""A kind, its changed fields, its changed tensors (a type: the same shape in that type), and the
expected message."""

STATED: list[Damage] = [
    *(
        (kind, {"qwen35." + key: value}, {}, said)
        for kind in ("delta net", "MTP after a delta net")
        for key, value, said in (
            ("full_attention_interval", 0, "full_attention_interval is 0"),
            ("rope.dimension_count", 0, "rope.dimension_count is 0"),
            ("rope.dimension_sections", [0] * 4, "rope.dimension_sections do not divide"),
            ("rope.dimension_sections", [0, 0, 0, 8], "rope.dimension_sections do not divide"),
            ("rope.dimension_sections", [-1] * 4, "rope.dimension_sections do not divide"),
            ("rope.dimension_sections", [9, -9, 0, 0], "rope.dimension_sections do not divide"),
            ("rope.dimension_sections", [99] * 4, "rope.dimension_sections do not divide"),
        )
    ),
    *(
        (
            "delta net",
            {"qwen35.ssm.inner_size": size},
            {},
            f"contradicts its ssm.inner_size of {size}",
        )
        for size in (0, 1, 2, 3, 7, 64, 127, 129, 255, 256, 65536)
    ),
    *(
        ("hybrid", {"jamba.ssm.inner_size": size}, {}, f"ssm.inner_size is {size}, not twice")
        for size in (0, 1, 128, 257, 512, 65536)
    ),
    *(
        (
            "hybrid",
            {"jamba.embedding_length": size},
            {},
            f"not twice its embedding_length of {size}",
        )
        for size in (64, 256, 65536)
    ),
    ("MTP after experts", {"glm4moe.rope.dimension_count": 0}, {}, "rope.dimension_count is 0"),
    ("EAGLE-3", {"eagle3.rope.dimension_count": 0}, {}, "rope.dimension_count is 0"),
    (
        "hybrid with snapshots",
        {"lfm2.attention.head_count": [2, 2], "lfm2.rope.dimension_count": 66},
        {},
        "have 64 numbers, of which 66 are rotated by position",
    ),
    (
        "sliding window",
        {"gemma3.rope.dimension_count_swa": 66},
        {},
        "have 64 numbers, of which 66 are rotated by position",
    ),
]

HELD: list[Damage] = [
    *(
        (kind, {}, {f"blk.0.{tensor}.weight": None}, f"blk.0.{tensor}.weight is missing")
        for kind in ("delta net", "MTP after a delta net")
        for tensor in ("attn_gate", "attn_qkv")
    ),
    *(
        (kind, {}, {f"blk.0.{tensor}": np.float16}, f"blk.0.{tensor} is of type f16")
        for kind, tensors in (
            ("recurrent", ("ssm_conv1d.weight", "ssm_a", "ssm_d")),
            ("hybrid", ("ssm_conv1d.weight", "ssm_a", "ssm_d")),
            ("hybrid with snapshots", ("shortconv.conv.weight",)),
            ("delta net", ("ssm_conv1d.weight", "ssm_a")),
        )
        for tensor in tensors
    ),
    *(
        (kind, {}, dict.fromkeys(missing), "it is a file of multi-token prediction layers")
        for kind, first in (("MTP after a delta net", "ssm_out"), ("MTP after experts", "attn_q"))
        for missing in (
            ["blk.0.attn_norm.weight"],
            ["blk.0.attn_norm.weight", f"blk.0.{first}.weight"],
        )
    ),
]


def damage(source: Path, path: Path, fields: dict[str, Any], tensors: dict[str, Any]) -> None:
    data = {tensor.name: tensor.data for tensor in gguf.GGUFReader(source).tensors}
    cast = {name: t if t is None else data[name].astype(t) for name, t in tensors.items()}
    rewrite(source, path, fields, cast)


@pytest.mark.parametrize(("kind", "fields", "tensors", "said"), STATED + HELD)
def test_damaged_layers_are_refused(
    kind: str,
    fields: dict[str, Any],
    tensors: dict[str, Any],
    said: str,
    tmp_path: Path,
    whole: Callable[[str], Path],
    target: Path,
) -> None:
    """Without a check, each would end the process in llama.cpp, or keep it busy forever."""
    damage(whole(kind), path := tmp_path / "damaged.gguf", fields, tensors)
    words = outcome(kind, path, target)
    assert words.startswith(f"refused Cannot use {path} as a model: ")
    assert said in words
    assert words.endswith(".\n")
    assert words.count("\n") == 1


def test_superfluous_header_fields_are_accepted(
    tmp_path: Path, whole: Callable[[str], Path], target: Path
) -> None:
    """llama.cpp writes all fields to its files: as zeros, or one value for each layer."""
    nothing: dict[str, Any] = {
        "rope.dimension_sections": [0] * 4,
        "ssm.inner_size": 0,
        "shortconv.l_cache": 0,
    }
    for kind, architecture, fields in (
        ("dense", "llama", nothing),
        ("hybrid with snapshots", "lfm2", {"attention.head_count": [2, 2]}),
    ):
        named = {f"{architecture}.{name}": value for name, value in fields.items()}
        damage(whole(kind), path := tmp_path / f"{kind}.gguf", named, {})
        assert outcome(kind, path, target) == "ran 4\n"


def test_a_rope_dimension_of_0_is_accepted_without_attention(
    tmp_path: Path, whole: Callable[[str], Path], target: Path
) -> None:
    for kind, architecture in (("recurrent", "mamba"), ("hybrid", "jamba")):
        fields = {f"{architecture}.rope.dimension_count": 0}
        damage(whole(kind), path := tmp_path / f"{kind}.gguf", fields, {})
        assert outcome(kind, path, target) == "ran 4\n"


def test_models_command_lists_damaged_files_with_undamaged_ones(
    tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    (folder := tmp_path / "models").mkdir()
    (folder / "sound.gguf").symlink_to(whole("delta net"))
    damages = [
        STATED[0],
        ("delta net", {"qwen35.rope.dimension_count": 0}, {}, "rope.dimension_count is 0"),
        ("delta net", {"qwen35.ssm.inner_size": 2}, {}, "contradicts"),
        ("hybrid", {"jamba.ssm.inner_size": INNER // 2}, {}, "not twice"),
        HELD[0],
    ]
    for i, (kind, fields, tensors, _) in enumerate(damages):
        damage(whole(kind), folder / f"{i}.gguf", fields, tensors)
    process = subprocess.run(
        [sys.executable, "-m", "specllama", "models", "--json", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    records = [json.loads(line) for line in process.stdout.splitlines()]
    errors = {
        path.name: record.get("error")
        for record in records
        if (path := Path(record["path"])).parent == folder
    }
    assert not errors.pop("sound.gguf")
    assert len(errors) == len(damages)
    for i, (*_, said) in enumerate(damages):
        assert said in errors[f"{i}.gguf"]


def test_trace_command_refuses_damaged_files_with_exit_code_2(
    tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    kind, fields, tensors, said = HELD[0]
    damage(whole(kind), path := tmp_path / "damaged.gguf", fields, tensors)
    process = subprocess.run(
        [sys.executable, "-m", "specllama", "trace", "-m", str(path), "-p", "w1", "-n", "4"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 2, process.stderr
    assert said in process.stderr
