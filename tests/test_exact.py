"""The exact configuration: demanded, refused, and reported."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prompts import PROMPTS
from random_model import write_dense, write_experts
from specllama import ArgumentError, SpecSession

X86 = platform.machine() in ("x86_64", "AMD64")
pytestmark = pytest.mark.skipif(not X86, reason="exactness is claimed for x86-64 only")
PAD = Path(__file__).parents[1] / "models" / "pad.py"


def exact_session(model: Path | None = None, draft: Any = "ngram", **options: Any) -> SpecSession:
    return SpecSession(model, draft, exact=True, n_threads=1, **options)


def test_runs_say_whether_they_were_exact(tmp_path: Path) -> None:
    def is_exact(**options: Any) -> bool:
        with SpecSession(n_threads=1, n_gpu_layers=0, **options) as session:
            return session.generate([1, 5], max_tokens=2).stats.exact

    assert is_exact(exact=True)
    assert is_exact(kv_type="q8_0")  # the same, for Q8_0 weights
    assert not is_exact()
    assert not is_exact(kv_type="q8_0", flash_attn="auto", model=write_experts(tmp_path / "m.gguf"))


@pytest.mark.parametrize("weights", ["q8_0", "q4_0"])
def test_the_table_holds(tmp_path: Path, bundled_model: Path, weights: str) -> None:
    """Greedy and sampled, to the limit of the context, across widths."""
    path = tmp_path / "model.gguf"
    subprocess.run(
        [sys.executable, PAD, bundled_model, path, "--size", "8M", "--type", weights], check=True
    )
    plain = exact_session(path, None)
    sessions = [exact_session(path, spec_length=n) for n in (1, 5, 16, 64)]
    for name in ("module", "counting", "near the limit"):
        for temperature in (0.0, 1.0):
            options: dict[str, Any] = {"max_tokens": 300, "temperature": temperature, "seed": 4}
            expected = plain.generate(PROMPTS[name], **options)
            assert expected.stats.exact
            for session in sessions:
                assert session.generate(PROMPTS[name], **options).tokens == expected.tokens
    for session in (plain, *sessions):
        session.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_type": "f16"}, "the KV memory is of type f16, not q8_0"),
        ({"kv_type": "f16", "flash_attn": False}, "the KV memory is of type f16"),
    ],
)
def test_what_contradicts_it(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        exact_session(**options)


def test_weights_that_are_not_exact(tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"ffn_gate_inp\.weight is of neither type Q8_0 nor Q4_0"
    ):
        exact_session(write_experts(tmp_path / "experts.gguf"))
    with exact_session(write_dense(tmp_path / "dense.gguf")) as session:
        assert session.generate([1, 5, 6], max_tokens=3).stats.exact
