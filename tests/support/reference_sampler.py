"""The choice rule in Python's integers and numpy's float64, and a test of distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from specllama import _core

Row = NDArray[np.float32]

OFF: dict[str, Any] = {
    "temperature": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repeat_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "penalty_last_n": 64,
    "logit_bias": [],
    "logprobs": -1,
    "processed_logprobs": False,
    "seed": 0,
    "acceptance": "coupled",
    "lenience": 1.0,
    "grammar": "",
    "grammar_triggers": [],
}


def sampler(n_vocab: int, **options: Any) -> _core.Sampler:
    options = OFF | options
    options["acceptance"] = _core.AcceptanceRule[options["acceptance"]]
    return _core.Sampler(_core.SamplingOptions(**options), n_vocab)


# The reference: noise in Python's integers, everything else in numpy's float64.

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def noise(seed: int, position: int, n_vocab: int) -> NDArray[np.float64]:
    state = mix((seed + GAMMA) & MASK)
    state = mix((state + GAMMA) & MASK)  # stream 0
    state = mix((state + position + GAMMA) & MASK)
    bits = [mix((state + (token + 1) * GAMMA) & MASK) for token in range(n_vocab)]
    uniform = (np.array([x >> 12 for x in bits], np.float64) + 0.5) * 2.0**-52
    gumbels: NDArray[np.float64] = -np.log(-np.log(uniform))
    return gumbels


def kept_probabilities(logits: Row, context: list[int], o: dict[str, Any]) -> NDArray[np.float64]:
    """Probability of each token after all steps; 0 where it was cut."""
    row = logits.copy()
    for token, bias in o["logit_bias"]:
        row[token] += np.float32(bias)
    n_last = o["penalty_last_n"] if o["penalty_last_n"] >= 0 else len(context)
    last = context[max(0, len(context) - n_last) :]
    for token in set(last):
        x = float(row[token])
        x = x / o["repeat_penalty"] if x > 0 else x * o["repeat_penalty"]
        row[token] = x - last.count(token) * o["frequency_penalty"] - o["presence_penalty"]
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    if o["top_k"]:
        order = order[: o["top_k"]]
    weights = np.exp(row[order].astype(np.float64) - row[order[0]])
    if o["top_p"] < 1:
        enough = np.cumsum(weights) >= o["top_p"] * weights.sum()
        order = order[: int(np.argmax(enough)) + 1]
    if o["min_p"]:
        order = [t for t in order if row[t] >= row[order[0]] + math.log(o["min_p"])]
    out = np.zeros(len(row))
    if o["temperature"] == 0:
        out[order[0]] = 1
        return out
    scaled = row[order].astype(np.float64) / o["temperature"]
    out[order] = np.exp(scaled - scaled.max())
    return out / out.sum()


def reference_choice(logits: Row, context: list[int], o: dict[str, Any]) -> int:
    p = kept_probabilities(logits, context, o)
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(p) + noise(o["seed"], len(context), len(p))))


def chi_square(observed: NDArray[Any], expected: NDArray[Any]) -> tuple[float, float]:
    """The statistic, cells pooled to an expected count of 5, and its limit at 4.5 standard
    deviations (Wilson and Hilferty 1931)."""
    order = np.argsort(expected)
    seen, wanted = observed[order].astype(float), expected[order].astype(float)
    small = int(np.searchsorted(np.cumsum(wanted), 5.0)) + 1
    seen = np.append(seen[:small].sum(), seen[small:])
    wanted = np.append(wanted[:small].sum(), wanted[small:])
    keep = wanted >= 5
    degrees = int(keep.sum()) - 1
    if degrees == 0:  # as good as certain
        return float(abs(seen[keep][0] - wanted[keep][0])), 50.0
    statistic = float((((seen - wanted) ** 2) / np.maximum(wanted, 1e-9))[keep].sum())
    limit = degrees * (1 - 2 / (9 * degrees) + 4.5 * math.sqrt(2 / (9 * degrees))) ** 3
    return statistic, limit
