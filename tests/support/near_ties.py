"""Near-ties: choices between tokens that rounding decides, and how much llama.cpp alone rounds.

llama.cpp rounds activations to 8 bits, and the kernel of a sum depends on the width of a batch and
on the processor.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import llama_cpp
import numpy as np
from numpy.typing import NDArray
from reference_sampler import noise
from specllama import Generation
from specllama.measure.sequences import first_difference


def tie(plain: Generation, tokens: list[int], temperature: float = 0.0) -> float | None:
    """Return by how many nats the plain run preferred its token to the other run's at the first
    difference (None: the tokens are equal).

    At a temperature, the choice is the argmax of log-probability / T + noise, so the distance is
    that of these sums, times T.

    Args:
        plain: Plain run, with log-probabilities of enough candidates to include the other run's
            token.
        tokens: Tokens of the other run, with the same seed.
        temperature: Temperature of both runs.
    """
    first = first_difference(plain.tokens, tokens)
    if first is None:
        return None
    assert first < min(len(plain.tokens), len(tokens)), "one of them ended"
    there = plain.logprobs[first]
    assert there.token == plain.tokens[first]
    other = tokens[first]
    likeliest = dict(there.top)
    assert other in likeliest, f"token {other} is not among the {len(there.top)} likeliest"
    distance = there.logprob - likeliest[other]
    if temperature > 0:
        position = plain.stats.prompt_tokens + first
        gumbel = noise(plain.stats.seed, position, max(there.token, other) + 1)
        distance += temperature * float(gumbel[there.token] - gumbel[other])
        assert distance >= -1e-4, "the plain run chose what was not its best"
    return abs(distance)


def logprob_differences(a: Generation, b: Generation) -> list[float]:
    """Return the differences of the log-probabilities of two runs' tokens, up to their first
    different token."""
    n = first_difference(a.tokens, b.tokens)
    pairs = zip(a.logprobs[:n], b.logprobs[:n], strict=n is not None)
    return [abs(one.logprob - other.logprob) for one, other in pairs]


WIDTHS = (1, 2, 4, 5)
"""Tokens of a decode: rounds of up to four drafted tokens."""

N_LIKELY = 20


@cache
def rounding(model: Path, prompt: tuple[int, ...], tokens: tuple[int, ...]) -> tuple[float, float]:
    """Return the largest difference of a token's log-probability after the prompt, with and without
    flash attention, in nats: for the most likely token, and for any of the `N_LIKELY` most likely
    ones."""
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
