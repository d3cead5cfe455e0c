"""`Stats.same_widths`: the batch widths at which a session computes the same bits."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from prompts import PROMPTS
from random_model import N_VOCAB, write_dense, write_heads, write_sliding_window
from rewriting import write_quantized
from specllama import SpecSession

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="measured on x86-64 only"
)

N_CTX, N_TAIL = 704, 64


def same_widths(model: Path | None = None, **options: Any) -> tuple[int, int] | None:
    with SpecSession(model, n_threads=1, n_gpu_layers=0, **options) as session:
        return session.generate([1, 5], max_tokens=2).stats.same_widths


def test_same_widths_depend_on_attention_for_exact_weights(tmp_path: Path) -> None:
    heads = write_heads(tmp_path / "heads.gguf", 112)
    assert same_widths() == (2, 63)
    assert same_widths(n_ctx=256) == (1, 63)
    assert same_widths(kv_type="q8_0") == (1, 512)
    assert same_widths(kv_type="bf16") == (1, 512)
    assert same_widths(kv_type="bf16/f16") == (1, 512)
    assert same_widths(kv_type="f16/f32") == (2, 63)
    assert same_widths(heads) == (2, 512)  # without flash attention
    assert same_widths(heads, flash_attn=True) == (2, 63)
    assert same_widths(n_batch=32) == (2, 32)


def test_some_weights_narrow_the_same_widths(tmp_path: Path, bundled_model: Path) -> None:
    path = write_quantized(bundled_model, tmp_path / "model.gguf", "q6_k")
    assert same_widths(path, exact=True) in [(1, 7), (1, 512)]  # with AMX


def test_same_widths_are_unknown_for_shared_and_windowed_memories(tmp_path: Path) -> None:
    assert same_widths(n_seq=2) is None
    assert same_widths(n_seq=2, exact=True) == (1, 512)
    windows = write_sliding_window(tmp_path / "windows.gguf")
    assert same_widths(windows) is None


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("n_before", [200, 600])
def test_llama_cpp_computes_the_same_bits_at_the_same_widths(
    tmp_path: Path, flash_attn: bool, n_before: int
) -> None:
    """llama.cpp alone, through llama-cpp-python, with two threads."""
    model = write_dense(tmp_path / "model.gguf")
    n_ctx = 256 if n_before < 256 and flash_attn else N_CTX
    found = same_widths(model, flash_attn=flash_attn, n_ctx=n_ctx, kv_type="f16")
    assert found is not None
    decoder = Decoder(model, flash_attn=flash_attn)
    n_tail = min(N_TAIL, n_ctx - n_before)
    widths = [one for one in (1, 2, 3, 5, 8, 21, 63) if found[0] <= one <= min(found[1], n_tail)]
    rows = [decoder.logits(n_before, n_tail // width * width, width) for width in widths]
    for one in rows[1:]:
        n = min(len(rows[0]), len(one))
        np.testing.assert_array_equal(rows[0][:n], one[:n])
    decoder.close()


class Decoder:
    """A model in llama.cpp, with F16 KV memory and random tokens."""

    def __init__(self, model: Path, *, flash_attn: bool) -> None:
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(model).encode(), options)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = context.n_batch = context.n_ubatch = N_CTX
        context.n_threads = context.n_threads_batch = 2
        context.flash_attn_type = int(flash_attn)
        self._context = llama_cpp.llama_init_from_model(self._model, context)
        self._batch = llama_cpp.llama_batch_init(N_CTX, 0, 1)
        self._tokens = np.random.default_rng(1).integers(3, N_VOCAB, N_CTX)

    def logits(self, n_before: int, n: int, width: int) -> np.ndarray[Any, Any]:
        """Return the logits [n, vocabulary] of `n` tokens after `n_before` others, `width` of them
        decoded at once."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), False)
        self._decode(0, n_before)
        return np.concatenate(
            [self._decode(start, width) for start in range(n_before, n_before + n, width)]
        )

    def _decode(self, start: int, n: int) -> np.ndarray[Any, Any]:
        self._batch.n_tokens = n
        for row in range(n):
            self._batch.token[row] = int(self._tokens[start + row])
            self._batch.pos[row] = start + row
            self._batch.n_seq_id[row] = 1
            self._batch.seq_id[row][0] = 0
            self._batch.logits[row] = True
        assert llama_cpp.llama_decode(self._context, self._batch) == 0
        rows = [llama_cpp.llama_get_logits_ith(self._context, row) for row in range(n)]
        return np.stack([np.ctypeslib.as_array(row, (N_VOCAB,)).copy() for row in rows])

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)


@pytest.mark.parametrize("options", [{}, {"kv_type": "f16", "exact": False}, {"flash_attn": False}])
@pytest.mark.parametrize("prompt", ["counting", "near the limit"])
def test_a_repeated_prompt_gives_the_same_bits(prompt: str, options: dict[str, Any]) -> None:
    """The second time, all of it but the last token is in the memory."""
    with SpecSession(None, None, n_threads=2, n_gpu_layers=0, **options) as session:
        tokens = session.tokenize(PROMPTS[prompt])
        first, again = (session.generate(tokens, max_tokens=24, logprobs=1) for _ in range(2))
    assert (first.stats.reused_tokens, again.stats.reused_tokens) == (0, len(tokens) - 1)
    assert again.tokens == first.tokens
    assert first.logprobs is not None
    assert again.logprobs is not None
    assert [one.logprob for one in again.logprobs] == [one.logprob for one in first.logprobs]
