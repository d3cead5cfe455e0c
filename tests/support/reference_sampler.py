"""The choice rule with Python's integers and numpy's float64, and a test of distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from specllama import _core

Row = NDArray[np.float32]

OFF: dict[str, Any] = {
    "temperature": 0.0,
    "top_n_sigma": 0.0,
    "top_k": 0,
    "typical_p": 1.0,
    "top_p": 1.0,
    "min_p": 0.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "repeat_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "repeat_last_n": 64,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "dry_sequence_breakers": [],
    "logit_bias": [],
    "ignore_eos": False,
    "logprobs": -1,
    "processed_logprobs": False,
    "seed": 0,
    "acceptance": "coupled",
    "lenience": 1.0,
    "grammar": "",
    "grammar_syntax": _core.GrammarSyntax.gbnf,
    "grammar_triggers": [],
    "reasoning_budget": -1,
    "reasoning_opening": "",
    "reasoning_closing": "",
}


def sampler(n_vocab: int, texts: Sequence[bytes] = (), **options: Any) -> _core.Sampler:
    options = OFF | options
    options["acceptance"] = _core.AcceptanceRule[options["acceptance"]]
    return _core.Sampler(_core.SamplingOptions(**options), n_vocab, list(texts))


# The reference: noise with Python's integers, everything else with numpy's float64.

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def uniform(stream: int, seed: int, position: int, n_vocab: int) -> NDArray[np.float64]:
    """Return one number from 0 to 1 for each token."""
    state = mix((seed + GAMMA) & MASK)
    state = mix((state + stream + GAMMA) & MASK)
    state = mix((state + position + GAMMA) & MASK)
    bits = [mix((state + (token + 1) * GAMMA) & MASK) for token in range(n_vocab)]
    return (np.array([x >> 12 for x in bits], np.float64) + 0.5) * 2.0**-52


def noise(seed: int, position: int, n_vocab: int) -> NDArray[np.float64]:
    gumbels: NDArray[np.float64] = -np.log(-np.log(uniform(0, seed, position, n_vocab)))
    return gumbels


def repetitions(context: list[int], texts: Sequence[bytes], o: dict[str, Any]) -> dict[int, int]:
    """Return the tokens that DRY penalises, and the length of the repetition that each would
    continue: every earlier position is compared with the end, token by token."""
    breakers = [breaker.encode() for breaker in o["dry_sequence_breakers"]]
    n_last = o["dry_penalty_last_n"] if o["dry_penalty_last_n"] >= 0 else len(context)
    last = context[max(0, len(context) - n_last) :]
    text, ends = b"", []
    for token in last:
        text += texts[token] if texts else b""
        ends.append(len(text))
    last_break = max((text.rfind(one) + len(one) for one in breakers if one in text), default=0)
    behind = (
        sum(end - len(texts[token]) >= last_break for token, end in zip(last, ends, strict=True))
        if texts
        else len(last)
    )
    longest: dict[int, int] = {}
    for end in range(1, len(last)):
        length = 0
        while length < min(end, behind) and last[end - 1 - length] == last[-1 - length]:
            length += 1
        longest[last[end]] = max(length, longest.get(last[end], 0))
    return {
        token: length
        for token, length in longest.items()
        if length >= o["dry_allowed_length"]
        and not (texts and any(one in texts[token] for one in breakers))
    }


def relative(row: Row, order: list[int]) -> NDArray[np.float64]:
    """Return the weight of each of these tokens, relative to the most likely token of all."""
    weights: NDArray[np.float64] = np.exp(row[order].astype(np.float64) - float(row.max()))
    return weights


def cut(row: Row, o: dict[str, Any]) -> list[int]:
    """Return the tokens that all steps except XTC keep, the most likely first."""
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    if o["top_n_sigma"] > 0:
        least = float(row.max()) - o["top_n_sigma"] * row[np.isfinite(row)].astype(np.float64).std()
        order = [t for t in order if row[t] >= least]
    if o["top_k"]:
        order = order[: o["top_k"]]
    if o["typical_p"] < 1:
        p = relative(row, order)
        p /= p.sum()
        with np.errstate(divide="ignore"):
            information = -np.log(p)
        entropy = float((p[p > 0] * information[p > 0]).sum())
        nearest = sorted(range(len(order)), key=lambda i: (abs(information[i] - entropy), i))
        n_kept = int(np.argmax(np.cumsum(p[nearest]) >= o["typical_p"])) + 1
        order = [order[i] for i in sorted(nearest[:n_kept])]
    weights = relative(row, order)
    if o["top_p"] < 1:
        enough = np.cumsum(weights) >= o["top_p"] * weights.sum()
        order = order[: int(np.argmax(enough)) + 1]
    if o["min_p"]:
        order = [t for t in order if row[t] >= row[order[0]] + math.log(o["min_p"])]
    return order


def kept_probabilities(
    logits: Row, context: list[int], o: dict[str, Any], texts: Sequence[bytes] = ()
) -> NDArray[np.float64]:
    """Return the probability of each token after all steps (0: removed)."""
    row = logits.copy()
    for token, bias in o["logit_bias"]:
        row[token] += np.float32(bias)
    n_last = o["repeat_last_n"] if o["repeat_last_n"] >= 0 else len(context)
    last = context[max(0, len(context) - n_last) :]
    for token in set(last):
        x = float(row[token])
        x = x / o["repeat_penalty"] if x > 0 else x * o["repeat_penalty"]
        row[token] = x - last.count(token) * o["frequency_penalty"] - o["presence_penalty"]
    if o["dry_multiplier"]:
        for token, length in repetitions(context, texts, o).items():
            grown = o["dry_base"] ** (length - o["dry_allowed_length"])
            row[token] = float(row[token]) - o["dry_multiplier"] * grown
    order = cut(row, o)
    if uniform(4, o["seed"], len(context), 1)[0] < o["xtc_probability"]:
        weights = relative(row, order)
        top = int((weights >= o["xtc_threshold"] * weights.sum()).sum())
        order = order[max(top - 1, 0) :]
    out = np.zeros(len(row))
    if o["temperature"] == 0:
        out[order[0]] = 1
        return out
    scaled = row[order].astype(np.float64) / o["temperature"]
    out[order] = np.exp(scaled - scaled.max())
    return out / out.sum()


def reference_choice(
    logits: Row, context: list[int], o: dict[str, Any], texts: Sequence[bytes] = ()
) -> int:
    p = kept_probabilities(logits, context, o, texts)
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(p) + noise(o["seed"], len(context), len(p))))


def chi_square(observed: NDArray[Any], expected: NDArray[Any]) -> tuple[float, float]:
    """Return the statistic, with cells pooled to an expected count of 5, and its limit at 4.5
    standard deviations (Wilson and Hilferty 1931)."""
    order = np.argsort(expected)
    seen, wanted = observed[order].astype(float), expected[order].astype(float)
    small = int(np.searchsorted(np.cumsum(wanted), 5.0)) + 1
    seen = np.append(seen[:small].sum(), seen[small:])
    wanted = np.append(wanted[:small].sum(), wanted[small:])
    keep = wanted >= 5
    degrees = int(keep.sum()) - 1
    if degrees == 0:  # one outcome is nearly certain
        return float(abs(seen[keep][0] - wanted[keep][0])), 50.0
    statistic = float((((seen - wanted) ** 2) / np.maximum(wanted, 1e-9))[keep].sum())
    limit = degrees * (1 - 2 / (9 * degrees) + 4.5 * math.sqrt(2 / (9 * degrees))) ** 3
    return statistic, limit


def follows(tokens: NDArray[np.int32], p: NDArray[np.float64]) -> bool:
    """Return whether the tokens may have been drawn from p, by the chi-square test."""
    counts = np.bincount(tokens, minlength=len(p))
    kept = p > 0
    if counts[~kept].sum() > 0:
        return False
    if kept.sum() == 1:
        return True
    statistic, limit = chi_square(counts[kept], p[kept] * len(tokens))
    return statistic < limit
