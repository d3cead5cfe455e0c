"""models/pad.py: a padded model generates the same tokens and has the requested size."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from folders import MODELS
from llama_cpp import Llama

gguf = pytest.importorskip("gguf", reason="models/pad.py needs the gguf package")

TARGET = MODELS / "target-q8_0.gguf"
GGML_TYPE_Q8_0 = 8

PROMPT = "import os\nimport sys\nimport re\n\n\ndef main(args):"


def pad(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MODELS / "pad.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def greedy(path: Path, count: int = 100) -> list[int]:
    """Return the greedy continuation of `PROMPT`, in a configuration with reproducible rounding."""
    llama = Llama(
        str(path),
        n_ctx=512,
        type_k=GGML_TYPE_Q8_0,
        type_v=GGML_TYPE_Q8_0,
        flash_attn=True,
        n_gpu_layers=0,
        verbose=False,
    )
    prompt = llama.tokenize(PROMPT.encode())
    tokens = list(islice(llama.generate(prompt, temp=0.0), count))
    llama.close()
    return tokens


def metadata(path: Path) -> dict[str, object]:
    fields = gguf.GGUFReader(path).fields
    return {name: f.contents() for name, f in fields.items() if not name.startswith("GGUF.")}


@pytest.mark.parametrize(
    ("megabytes", "more"),
    [(20, []), (30, ["--layers=3"]), (60, ["--layers=2", "--embedding=1024"])],
)
def test_a_padded_model_generates_the_same_tokens(
    megabytes: int, more: list[str], tmp_path: Path
) -> None:
    padded = tmp_path / "padded.gguf"
    result = pad(TARGET, padded, f"--size={megabytes}M", "--type=q8_0", *more)
    assert result.returncode == 0, result.stderr
    assert padded.stat().st_size == pytest.approx(megabytes * 1e6, rel=0.01)
    tokens = greedy(padded)
    assert tokens == greedy(TARGET)
    assert len(set(tokens)) > 30, "too few different tokens for a comparison"


@pytest.mark.parametrize("weight_type", ["f32", "f16", "bf16", "q4_0"])
def test_the_padded_size_changes_no_token(weight_type: str, tmp_path: Path) -> None:
    small, big = tmp_path / "small.gguf", tmp_path / "big.gguf"
    assert pad(TARGET, small, "--size=25M", f"--type={weight_type}").returncode == 0
    more = ["--layers=1", "--embedding=1024"] if weight_type == "bf16" else ["--layers=1"]
    assert pad(TARGET, big, "--size=70M", f"--type={weight_type}", *more).returncode == 0
    assert greedy(small) == greedy(big)


def test_padding_keeps_the_original_blocks_bit_for_bit(tmp_path: Path) -> None:
    padded = tmp_path / "padded.gguf"
    assert pad(TARGET, padded, "--size=10M", "--type=q8_0").returncode == 0
    new = {tensor.name: tensor.data for tensor in gguf.GGUFReader(padded).tensors}
    for tensor in gguf.GGUFReader(TARGET).tensors:
        corner = tuple(slice(n) for n in tensor.data.shape)
        assert np.array_equal(new[tensor.name][corner], tensor.data), tensor.name


def test_padding_keeps_the_metadata(tmp_path: Path) -> None:
    padded = tmp_path / "padded.gguf"
    assert pad(TARGET, padded, "--size=20M", "--type=bf16", "--layers=2").returncode == 0
    before, after = metadata(TARGET), metadata(padded)
    assert before.keys() == after.keys()
    assert {key for key in before if before[key] != after[key]} == {
        "general.name",
        "general.file_type",
        "llama.feed_forward_length",
        "llama.block_count",
    }
    assert after["llama.block_count"] == 8


def test_a_longer_embedding_changes_the_dependent_metadata(tmp_path: Path) -> None:
    padded = tmp_path / "padded.gguf"
    result = pad(TARGET, padded, "--size=40M", "--type=q8_0", "--embedding=1024")
    assert result.returncode == 0, result.stderr
    before, after = metadata(TARGET), metadata(padded)
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    assert changed.pop("general.name") != before["general.name"]
    assert changed.pop("llama.feed_forward_length") > before["llama.feed_forward_length"]
    assert changed == {
        "llama.embedding_length": 1024,
        "llama.attention.layer_norm_rms_epsilon": pytest.approx(2.5e-6),
        "llama.attention.key_length": 64,
        "llama.attention.value_length": 64,
    }
    shapes = {tensor.name: tuple(tensor.shape) for tensor in gguf.GGUFReader(padded).tensors}
    assert shapes["blk.0.attn_q.weight"] == (1024, 256)
    assert shapes["blk.0.attn_output.weight"] == (256, 1024)
    assert shapes["output_norm.weight"] == (1024,)


def other_architecture(tmp_path: Path) -> Path:
    path = tmp_path / "other.gguf"
    data = TARGET.read_bytes()
    # The same length, so that nothing else in the file moves.
    path.write_bytes(data.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma", 1))
    return path


def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.gguf"
    path.write_text("not a model, but long enough to hold a header")
    return path


def cut_file(tmp_path: Path) -> Path:
    path = tmp_path / "cut.gguf"
    path.write_bytes(TARGET.read_bytes()[:1_000_000])
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text_file, "is not a readable GGUF file"),
        (cut_file, "is not a readable GGUF file"),
        (other_architecture, "only the `llama` architecture can be padded"),
        (lambda tmp_path: tmp_path / "absent.gguf", "absent.gguf"),
    ],
)
def test_bad_sources_for_padding_are_refused(
    make: Callable[[Path], Path], message: str, tmp_path: Path
) -> None:
    result = pad(make(tmp_path), tmp_path / "out.gguf", "--size=20M", "--type=q8_0")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size=3M", "--type=q8_0"], "3.0 MB is less than the model itself takes: 6.4 MB"),
        (["--size=20M", "--type=q9_9"], "invalid choice: 'q9_9'"),
        (["--size=big", "--type=q8_0"], "'big' is not a size"),
        (["--size=20M", "--type=q8_0", "--layers=-1"], "'-1' is not a number of layers"),
        (["--size=20M", "--type=q8_0", "--embedding=wide"], "'wide' is not a length"),
        (["--size=20M", "--type=q8_0", "--embedding=512"], "256 times a power of 4, not 512"),
        (["--size=20M", "--type=q8_0", "--embedding=300"], "256 times a power of 4, not 300"),
        (["--size=20M", "--type=q8_0", "--embedding=0"], "256 times a power of 4, not 0"),
        (["--size=6M", "--type=q8_0", "--embedding=1024"], "and an embedding of 1024"),
    ],
)
def test_bad_padding_requests_are_refused(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = pad(TARGET, tmp_path / "out.gguf", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (tmp_path / "out.gguf").exists()


def test_padding_never_overwrites_its_source(tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    shutil.copy(TARGET, copy)
    result = pad(copy, copy, "--size=20M", "--type=q8_0")
    assert result.returncode == 2
    assert "cannot be padded onto itself" in result.stderr
    assert copy.read_bytes() == TARGET.read_bytes()
