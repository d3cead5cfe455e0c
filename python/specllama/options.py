"""Options of a generation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.grammar import gbnf


class GenerateOptions(TypedDict, total=False):
    """What `generate`, `stream`, `submit` and the others take besides the prompt; all by keyword,
    all optional.

    The steps of sampling come in llama.cpp's order: bias and penalties, grammar, top_k, top_p,
    min_p, temperature.

    Attributes:
        max_tokens: Most tokens to generate; the context must have room for them. None: until it is
            full. (256, or until it is full.)
        stop: Text, or several, before which the generation ends (none).
        echo: Put the prompt before the text (False).
        temperature: 0 is greedy: the most likely token, always (0). More: less likely ones, too.
        top_k: Only the k most likely tokens (0: off).
        top_p: Only the most likely tokens that together have this probability (1: off).
        min_p: Only tokens at least this fraction as likely as the most likely one (0: off).
        repeat_penalty: Divides positive and multiplies negative logits of recent tokens (1: off).
        frequency_penalty: Taken off the logits of recent tokens, for each occurrence (0: off).
        presence_penalty: Taken off the logits of recent tokens, once (0: off).
        penalty_last_n: How many tokens, the prompt's included, are recent (64); -1: all.
        logit_bias: Added to the logits of token ids; minus infinity forbids one (none).
        logprobs: Log-probabilities of each token and of this many most likely ones at its
            position, 0 to 100 (none).
        processed_logprobs: Of what the steps above make of the distribution, not of the model's
            own (False).
        seed: 0 to 2^64 - 1: same seed, same tokens, whoever drafts. None: a fresh one, reported in
            `Generation.stats.seed`.
        acceptance: What becomes of drafts at temperatures above 0. "coupled" (the default): kept if
            they are what the model chooses with this seed, so that the same seed gives the same
            tokens whoever drafts. "rejection": kept with probability p / q (Leviathan et al. 2023,
            algorithm 1), which is more often; the output has the same distribution, but which text
            comes depends on the drafter, too.
        lenience: For rejection: below 1, q is scaled by it in that test, so that more is kept, and
            the output is no longer the model's: no token comes more often than with p / lenience
            (Leviathan et al. 2023, appendix A.5). At temperature 0, a draft token at least this
            fraction as likely as the likeliest is kept. Lossy; 1 is off (1).
        grammar: GBNF text that the output must follow, at most 64 kB (none). The output may end
            early by max_tokens or a stop string.
        json_schema: A JSON schema, as a dict or as text, that the output must follow, instead of
            a grammar (none); {}: any JSON value.
        reference: A text, or token ids, that the n-gram drafter may copy from besides prompt and
            generation: the file being edited, retrieved documents. It is no part of the prompt; it
            changes the speed, not the text, as drafters do (none).
        trace: Keep in `Generation.trace` what every round did (False).
    """

    max_tokens: int | None
    stop: str | Iterable[str] | None
    echo: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_last_n: int
    logit_bias: Mapping[int, float] | None
    logprobs: int | None
    processed_logprobs: bool
    seed: int | None
    acceptance: Literal["coupled", "rejection"]
    lenience: float
    grammar: str | None
    json_schema: str | Mapping[str, Any] | None
    reference: str | Iterable[int] | None
    trace: bool


class CoreOptions(NamedTuple):
    """The options as the core takes them."""

    max_tokens: int | None
    stop: list[str]
    sampling: _core.SamplingOptions
    echo: bool
    reference: str | list[int]
    trace: bool


def core_options(
    *,
    max_tokens: int | EllipsisType | None = ...,
    stop: str | Iterable[str] | None = (),
    echo: bool = False,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repeat_penalty: float = 1.0,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    penalty_last_n: int = 64,
    logit_bias: Mapping[int, float] | None = None,
    logprobs: int | None = None,
    processed_logprobs: bool = False,
    seed: int | None = None,
    acceptance: Literal["coupled", "rejection"] = "coupled",
    lenience: float = 1.0,
    grammar: str | None = None,
    json_schema: str | Mapping[str, Any] | None = None,
    reference: str | Iterable[int] | None = None,
    trace: bool = False,
) -> CoreOptions:
    """Check the types of `GenerateOptions` and fill in defaults. Raises ArgumentError."""
    if acceptance not in ("coupled", "rejection"):
        raise ArgumentError(f'acceptance must be "coupled" or "rejection", not {acceptance!r}.')
    sampling = _core.SamplingOptions(
        temperature=_check.number("temperature", temperature),
        top_k=_check.integer("top_k", top_k),
        top_p=_check.number("top_p", top_p),
        min_p=_check.number("min_p", min_p),
        repeat_penalty=_check.number("repeat_penalty", repeat_penalty),
        frequency_penalty=_check.number("frequency_penalty", frequency_penalty),
        presence_penalty=_check.number("presence_penalty", presence_penalty),
        penalty_last_n=_check.integer("penalty_last_n", penalty_last_n),
        logit_bias=_biases(logit_bias),
        logprobs=-1 if logprobs is None else _check.integer("logprobs", logprobs, low=0),
        processed_logprobs=bool(processed_logprobs),
        seed=None if seed is None else _check.integer("seed", seed, low=0, high=2**64 - 1),
        acceptance=_core.AcceptanceRule[acceptance],
        lenience=_check.number("lenience", lenience),
        grammar=gbnf(grammar, json_schema),
    )
    return CoreOptions(
        max_tokens=_max_tokens(max_tokens),
        stop=_check.stop_strings(stop),
        sampling=sampling,
        echo=bool(echo),
        reference=_reference(reference),
        trace=bool(trace),
    )


def _reference(value: Any) -> str | list[int]:
    if value is None:
        return []
    return (
        _check.text("reference", value)
        if isinstance(value, str)
        else _check.tokens("reference", value)
    )


def _max_tokens(value: int | EllipsisType | None) -> int | None:
    """Return what the core calls it: -1 until the context is full, None for the default."""
    if value is None:
        return -1
    return None if value is ... else _check.integer("max_tokens", value, low=0)


def _biases(value: Any) -> list[tuple[int, float]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ArgumentError(
            f"logit_bias must map token ids to numbers, not be a {type(value).__name__}."
        )
    biases = []
    for token, bias in value.items():
        name = f"logit_bias[{token!r}]"
        number = _check.number(name, bias)
        if math.isnan(number) or number > 1e30:
            raise ArgumentError(f"{name} must be finite or minus infinity, not {bias!r}.")
        biases.append((_check.integer("a token id of logit_bias", token), number))
    return biases
