"""The bundled pair: llama.cpp computes the results of the training from the files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import DATA, MODELS
from llama_cpp import Llama
from numpy.typing import NDArray

gguf = pytest.importorskip("gguf", reason="reading tensors needs the gguf package")

REFERENCE: dict[str, Any] = json.loads((DATA / "reference.json").read_text(encoding="utf-8"))
"""Written by models/reference.py, which describes it."""

GGML_TYPE_F32 = 0

FLOAT_TOLERANCE = 1e-3
"""Largest difference of a logit if both sides compute in float32. Measured: 6e-5, mostly from the
four stored decimals; the rest allows for another order of sums on another machine."""

Q8_TOLERANCE = 0.1
"""Root mean square difference of the logits if llama.cpp multiplies Q8_0 weights, for which it also
rounds activations to eight bits. Measured: 0.06 (target) and 0.04 (draft). The logits' own spread
is over 3, and that of a wrong network 1.8 and more (see the tests that make one)."""

Q8_AGREEMENT = 0.9
"""Share of positions whose most likely token is the same after that rounding. Measured: 0.98 and
more."""

both = pytest.mark.parametrize("role", ["target", "draft"])


def bundled(role: str) -> Path:
    return MODELS / f"{role}-q8_0.gguf"


def logits(path: Path) -> NDArray[np.float32]:
    """Return logits (positions, vocabulary) of the reference prompt, with a float32 KV memory."""
    llama = Llama(
        str(path),
        n_ctx=512,
        type_k=GGML_TYPE_F32,
        type_v=GGML_TYPE_F32,
        n_gpu_layers=0,
        logits_all=True,
        verbose=False,
    )
    prompt = REFERENCE["prompt"]
    llama.eval(prompt)
    rows = np.array(llama.scores[: len(prompt)])
    llama.close()
    return rows


def differences(role: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows[:, REFERENCE["columns"]] - np.array(
        REFERENCE["models"][role]["logits"], dtype=np.float32
    )


def root_mean_square(values: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@both
def test_tokens_of_the_bundled_files_equal_the_reference(role: str) -> None:
    llama = Llama(str(bundled(role)), vocab_only=True, verbose=False)
    for case in REFERENCE["texts"]:
        text = case["text"].encode()
        assert llama.tokenize(text, add_bos=False) == case["tokens"], case["text"]
        assert llama.tokenize(text)[0] == llama.token_bos() == 0
        assert llama.detokenize(case["tokens"]) == text
    llama.close()


@both
def test_logits_of_the_bundled_files_are_near_the_reference(role: str) -> None:
    rows = logits(bundled(role))
    assert root_mean_square(differences(role, rows)) < Q8_TOLERANCE
    agreement = np.mean(rows.argmax(-1) == REFERENCE["models"][role]["best"])
    assert agreement > Q8_AGREEMENT


@both
def test_logits_of_the_bundled_weights_in_float32_equal_the_reference(
    role: str, tmp_path: Path
) -> None:
    """The same weights in float32, converted by models/pad.py, so that nothing is rounded."""
    path = tmp_path / "float32.gguf"
    command = [sys.executable, MODELS / "pad.py", bundled(role), path, "--size=26M", "--type=f32"]
    subprocess.run([*map(str, command)], check=True)
    rows = logits(path)
    assert np.abs(differences(role, rows)).max() < FLOAT_TOLERANCE
    assert rows.argmax(-1).tolist() == REFERENCE["models"][role]["best"]


def tensor_bytes(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a GGUF file by name, as writable arrays (rows, bytes) of the file."""
    return {tensor.name: tensor.data for tensor in gguf.GGUFReader(path, "r+").tensors}


@both
def test_swapped_layers_change_the_logits(role: str, tmp_path: Path) -> None:
    path = tmp_path / "swapped.gguf"
    shutil.copy(bundled(role), path)
    tensors = tensor_bytes(path)
    first, second = (tensors[f"blk.{layer}.attn_v.weight"] for layer in (0, 1))
    first[:], second[:] = second.copy(), first.copy()
    assert root_mean_square(differences(role, logits(path))) > 10 * Q8_TOLERANCE


@both
def test_another_rope_convention_changes_the_logits(role: str, tmp_path: Path) -> None:
    """Queries and keys are ordered for rotary pairs (i, i + half)."""
    path = tmp_path / "half.gguf"
    shutil.copy(bundled(role), path)
    heads = 4
    for name, data in tensor_bytes(path).items():
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            pairs = data.reshape(heads, -1, 2, data.shape[1]).copy()
            data[:] = pairs.swapaxes(1, 2).reshape(data.shape)
    assert root_mean_square(differences(role, logits(path))) > 10 * Q8_TOLERANCE


def test_the_data_card_has_the_hashes_of_the_files() -> None:
    card = (MODELS / "README.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"`([\w-]+\.gguf)`[^\n]*`([0-9a-f]{64})`", card))
    files = {path.name: path.read_bytes() for path in MODELS.glob("*.gguf")}
    assert stated == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert sum(map(len, files.values())) <= 7_600_000


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("torch") is None or find_spec("tokenizers") is None,
    reason="training needs torch and tokenizers",
)
@pytest.mark.parametrize(
    "script",
    [
        "train.py",
        "train_head.py",
        "train_head.py --target",
        "train_head.py --kind dspark",
        "train_head.py --kind dspark --target",
    ],
)
def test_a_small_training_runs_resumes_and_exports(script: str, tmp_path: Path) -> None:
    """Train, resume, export and evaluate; without torch.compile, which needs a C++ compiler."""
    file, *other = script.split()
    command = [sys.executable, str(MODELS / file), "--smoke", "--no-compile"]
    if "dspark" in other:
        command += ["--kind", "dspark"]
    if "--target" in other:
        from random_model import write_dense

        target, texts = tmp_path / "target.gguf", tmp_path / "texts.jsonl"
        line = {"prompt": [1, *range(3, 30)], "answer": [*range(40, 90)]}
        texts.write_text(f"{json.dumps(line)}\n" * 30, encoding="utf-8")
        command += ["--target", write_dense(target), "--texts", texts, "--known", "50"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    assert "resumed after step" in result.stdout
    assert "identical" in result.stdout
