"""The exact configuration: required, refused and reported."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from folders import MODELS
from prompts import PROMPTS
from random_model import (
    write_dense,
    write_experts,
    write_hybrid,
    write_hybrid_with_snapshots,
    write_recurrent,
)
from rewriting import write_quantized
from specllama import ArgumentError, SpecSession
from specllama._core import cpu_kernels

X86 = platform.machine() in ("x86_64", "AMD64")
pytestmark = pytest.mark.skipif(not X86, reason="exactness is claimed for x86-64 only")
PAD = MODELS / "pad.py"


def exact_session(model: Path | None = None, draft: Any = "ngram", **options: Any) -> SpecSession:
    return SpecSession(model, draft, exact=True, n_threads=1, **options)


def test_stats_exact_reports_the_configuration(tmp_path: Path) -> None:
    def is_exact(**options: Any) -> bool:
        with SpecSession(n_threads=1, n_gpu_layers=0, **options) as session:
            return session.generate([1, 5], max_tokens=2).stats.exact

    assert is_exact(exact=True)
    # exact="auto" is exact if that costs no time.
    assert is_exact(kv_type="q8_0")
    assert is_exact(kv_type="bf16/f16")
    assert is_exact(exact=False, kv_type="q8_0")  # the same
    assert not is_exact()
    assert not is_exact(exact=False)
    # An explicit option is kept.
    assert not is_exact(kv_type="f16")
    assert not is_exact(flash_attn=False, kv_type="f16")
    # Exactness costs time with float weights.
    experts = write_experts(tmp_path / "experts.gguf")
    assert not is_exact(model=experts, kv_type="q8_0")
    assert not is_exact(model=experts, exact=False, kv_type="q8_0")
    assert is_exact(model=experts, exact=True)


@pytest.mark.parametrize("weights", ["q8_0", "q4_0", "bf16", "f16", "f32"])
def test_bits_are_equal_at_every_width_for_padded_models(
    tmp_path: Path, bundled_model: Path, weights: str
) -> None:
    """Greedy and sampled, up to the end of the context: tokens and logits."""
    path = tmp_path / "model.gguf"
    size = "8M" if weights.startswith("q") else "26M"
    subprocess.run(
        [sys.executable, PAD, bundled_model, path, "--size", size, "--type", weights], check=True
    )
    check_widths(path, [PROMPTS["counting"], PROMPTS["near the limit"]], n_tokens=80)


@pytest.mark.parametrize("weights", ["q4_1", "q5_0", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs"])
def test_bits_are_equal_at_every_width_for_quantised_models(
    tmp_path: Path, bundled_model: Path, weights: str
) -> None:
    path = write_quantized(bundled_model, tmp_path / "model.gguf", weights)
    check_widths(path, [PROMPTS["counting"]], n_tokens=80)


def test_k_quants_limit_the_width_of_exact_decodes(tmp_path: Path, bundled_model: Path) -> None:
    """Except with AMX, which gives the same bits at every width."""
    path = write_quantized(bundled_model, tmp_path / "model.gguf", "q4_k")
    with exact_session(path, spec_length=16) as session:
        rounds = session.generate(PROMPTS["counting"], max_tokens=100).stats.by_round
        longest = max(drafted for drafted, _ in rounds)
        assert longest == (16 if "AMX" in session.cpu_kernels else 6)
    if "AMX" not in cpu_kernels():
        with pytest.raises(ArgumentError, match="n_seq can be at most 7, not 8"):
            exact_session(path, n_seq=8)
        with SpecSession(path, kv_type="q8_0", n_gpu_layers=0, n_threads=1) as session:
            assert not session.generate("a", max_tokens=2).stats.exact


def test_bits_are_equal_at_every_width_for_experts(tmp_path: Path) -> None:
    """Their routers are float32."""
    prompts = [[1, 5, 6], [1, *range(3, 90)] * 6]
    check_widths(write_experts(tmp_path / "experts.gguf"), prompts, n_tokens=120)


def test_bits_are_equal_at_every_width_with_snapshots(tmp_path: Path) -> None:
    """Convolutions are float, so no token is decoded alone; the extra token is removed again."""
    prompts = [[1, 5, 6], [1, *range(3, 90)] * 6]
    check_widths(write_hybrid_with_snapshots(tmp_path / "hybrid.gguf"), prompts, n_tokens=120)


def check_widths(path: Path, prompts: list[Any], n_tokens: int) -> None:
    plain = exact_session(path, None)
    sessions = [exact_session(path, spec_length=n) for n in (1, 5, 64)]
    sessions.append(exact_session(path, n_batch=1))
    for prompt in prompts:
        for temperature in (0.0, 1.0):
            tokens = prompt if isinstance(prompt, list) else plain.tokenize(prompt)
            options: dict[str, Any] = {
                "max_tokens": min(n_tokens, plain.n_ctx - len(tokens)),
                "temperature": temperature,
                "seed": 4,
                "logprobs": 2,
            }
            expected = plain.generate(tokens, **options)
            assert expected.stats.exact
            for session in sessions:
                generation = session.generate(tokens, **options)
                assert generation.tokens == expected.tokens
                for a, b in zip(generation.logprobs, expected.logprobs, strict=True):
                    assert (a.logprob, a.top) == (b.logprob, b.top)  # to the last bit
    for session in (plain, *sessions):
        session.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_type": "f16"}, "the KV memory is of type f16, not bf16/f16, bf16 or q8_0"),
        ({"kv_type": "f16", "flash_attn": False}, "the KV memory is of type f16"),
    ],
)
def test_options_that_contradict_exact_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        exact_session(**options)


def test_float_weights_of_recurrent_models_are_refused_as_exact(tmp_path: Path) -> None:
    for write in (write_recurrent, write_hybrid):
        model = write(tmp_path / "model.gguf")
        with pytest.raises(ArgumentError, match="float weights, and a memory that cannot be cut"):
            exact_session(model)
    with exact_session(write_dense(tmp_path / "dense.gguf")) as session:
        assert session.generate([1, 5, 6], max_tokens=3).stats.exact
