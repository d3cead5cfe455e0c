"""Flash attention is switched off for shapes that are much slower with it on a CPU."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from random_model import write_heads, write_sliding_window
from specllama import OutOfMemoryError, SpecSession

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="measured on x86-64 only"
)

HAS_FP16 = "avx512_fp16" in (
    Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else ()
)

LOAD = """
import json, sys
from specllama import SpecSession, _core
_core.set_verbose(True)
options = {"n_ctx": 64, "n_batch": 64, "n_threads": 1, "n_gpu_layers": 0}
SpecSession(sys.argv[1], **(options | json.loads(sys.argv[2]))).close()
"""


def loaded(model: Path, options: str, cache: Path) -> str:
    """Return llama.cpp's log lines about a session's contexts."""
    return subprocess.run(
        [sys.executable, "-c", LOAD, str(model), options],
        capture_output=True,
        errors="replace",
        check=True,
        env=os.environ | {"SPECLLAMA_CACHE": str(cache)},
    ).stderr


def flash_attention(model: Path, options: str, cache: Path) -> list[str]:
    return re.findall(r"llama_context: flash_attn += (\w+)", loaded(model, options, cache))


@pytest.mark.parametrize(
    ("size", "options", "found"),
    [
        (128, "{}", "auto"),
        (128, '{"flash_attn": true}', "enabled"),
        (128, '{"flash_attn": false}', "disabled"),
        (32, "{}", "auto"),
        # The remainder of 32, 64 or 128 numbers is added up one by one.
        (112, "{}", "disabled"),
        (112, '{"kv_type": "f16"}', "disabled"),
        (112, '{"flash_attn": true}', "enabled"),
        (112, '{"n_seq": 2}', "auto"),
        # The scores of 8192 tokens with 66048 each would take more than 2 GiB.
        (112, '{"n_ctx": 66048, "n_batch": 8192}', "auto"),
        (64, "{}", "disabled" if HAS_FP16 else "auto"),
        (128, '{"kv_type": "q8_0"}', "enabled"),
    ],
)
def test_flash_attention_is_off_for_head_sizes_with_a_remainder(
    tmp_path: Path, size: int, options: str, found: str
) -> None:
    model = write_heads(tmp_path / "model.gguf", size)
    assert flash_attention(model, options, tmp_path) == [found]


def test_flash_attention_stays_auto_for_sliding_windows(tmp_path: Path) -> None:
    model = write_sliding_window(tmp_path / "model.gguf")
    assert set(flash_attention(model, "{}", tmp_path)) == {"auto"}


def test_flash_attention_is_decided_for_each_model(tmp_path: Path) -> None:
    """The log has the draft model first, then the target."""
    model = write_heads(tmp_path / "model.gguf", 112)
    draft = write_heads(tmp_path / "draft.gguf", 32)
    options = f'{{"draft": "{draft}", "spec_length": 4}}'
    assert flash_attention(model, options, tmp_path) == ["auto", "disabled"]


def test_attention_scores_without_flash_attention_count_as_memory(tmp_path: Path) -> None:
    """In the error for a context that fits no machine, and in the memory that is reserved."""
    model = write_heads(tmp_path / "model.gguf", 64)
    big = {"n_ctx": 1 << 22, "n_batch": 4096, "n_gpu_layers": 0}
    estimated, found = [], []
    for flash_attn in (False, True):
        with pytest.raises(OutOfMemoryError) as caught:
            SpecSession(model, "ngram", flash_attn=flash_attn, **big)
        estimated.append(int(re.findall(r"computing (\d+) MiB", str(caught.value))[0]))
        options = f'{{"n_ctx": 1024, "n_batch": 512, "flash_attn": {str(flash_attn).lower()}}}'
        sizes = re.findall(
            r"CPU compute buffer size = +([\d.]+) MiB", loaded(model, options, tmp_path)
        )
        found.append(max(map(float, sizes)))
    assert estimated[0] - estimated[1] == 2 * 4096 * (1 << 22) * 4 >> 20
    assert found[0] - found[1] == pytest.approx(2 * 512 * 1024 * 4 >> 20, rel=0.5)
