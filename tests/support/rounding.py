"""How far llama.cpp alone differs from itself where it decodes one text in batches of other widths:
activations are rounded to 8 bits, and which kernel sums up hangs on the width and the processor."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import llama_cpp
import numpy as np
from numpy.typing import NDArray

WIDTHS = (1, 2, 4, 5)
"""Tokens of a decode: as far as rounds of four drafted tokens go."""

N_LIKELY = 20


@cache
def rounding(model: Path, prompt: tuple[int, ...], tokens: tuple[int, ...]) -> tuple[float, float]:
    """Return the largest difference of a token's log-probability behind the prompt, in nats: of the
    likeliest, and of one of the `N_LIKELY` likeliest. With flash attention and without."""
    one, others = 0.0, 0.0
    for flash_attn in (False, True):
        llama = llama_cpp.Llama(
            str(model), n_ctx=len(prompt) + len(tokens), n_batch=512, n_gpu_layers=0, n_threads=1,
            n_threads_batch=1, flash_attn=flash_attn, logits_all=True, verbose=False,
        )  # fmt: skip
        plain, *wide = (_log_probabilities(llama, prompt, tokens, width) for width in WIDTHS)
        llama.close()
        likely = np.argsort(plain, axis=1)[:, -N_LIKELY:]
        for found in wide:
            distance = np.abs(np.take_along_axis(found - plain, likely, axis=1))
            one = max(one, float(distance[:, -1].max()))
            others = max(others, float(distance.max()))
    return one, others


def _log_probabilities(
    llama: llama_cpp.Llama, prompt: tuple[int, ...], tokens: tuple[int, ...], width: int
) -> NDArray[np.float64]:
    llama.reset()
    llama.eval(list(prompt))
    for first in range(0, len(tokens), width):
        llama.eval(list(tokens[first : first + width]))
    rows = np.array(llama.scores[len(prompt) : len(prompt) + len(tokens)], dtype=np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
