"""Reads from the fields of a request how tokens are chosen."""

from __future__ import annotations

from typing import Any, cast

from specllama.requests.field import INT32
from specllama.requests.json_text import parsed
from specllama.requests.options import FIELDS, GenerateOptions
from specllama.server.constraint import read_constraint
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.limits import MOST_BIASES, check_number, check_texts


def read_options(fields: Fields, defaults: GenerateOptions) -> GenerateOptions:
    """Return the options that all kinds of calls have in common. Raises ApiError."""
    options: dict[str, Any] = {**defaults}
    if "repetition_penalty" in fields:  # the name in vLLM and mlx-lm
        options["repeat_penalty"] = fields.number("repetition_penalty")
    if "thinking_budget_tokens" in fields:  # another name in llama-server
        options["reasoning_budget"] = fields.integer("thinking_budget_tokens", low=-1, high=INT32)
    for name, field in FIELDS.items():
        if field.api is None or field.api not in fields:
            continue
        if field.kind is int and field.range is not None:
            low, high = int(field.range.low), int(field.range.high)
            options[name] = fields.integer(field.api, low=low, high=high)
        else:
            options[name] = fields.number(field.api)
    seed = fields.integer("seed", low=-(2**63), high=2**64 - 1)
    if seed is not None and seed != -1:  # -1 is a fresh one, as for llama-server
        options["seed"] = seed % 2**64
    options["stop"] = stop_strings(fields)
    if "dry_sequence_breakers" in fields:
        options["dry_sequence_breakers"] = _texts(fields, "dry_sequence_breakers")
    options["logit_bias"] = _logit_bias(fields)
    for name in ("ignore_eos", "cache_prompt"):
        if name in fields:
            options[name] = fields.flag(name)
    options.update(read_constraint(fields))
    return cast(GenerateOptions, options)


def most_tokens(fields: Fields, *names: str, default: int | None = None) -> int | None:
    """Return the most tokens to generate, by the first of these fields that was given, else
    `default`. None: as many as the context holds; -1 means the same, as for llama-server. Raises
    ApiError."""
    for name in names:
        if (most := fields.integer(name, low=-1, high=2**63 - 1)) is not None:
            return None if most == -1 else min(most, INT32)
    return default


def stop_strings(fields: Fields, name: str = "stop") -> list[str]:
    """Return a field that is a stop string, or a list of them. Raises ApiError."""
    stop = fields.any(name)
    if stop is None:
        return []
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        fields.refuse(name, "a string or a list of strings")
    stops = [one for one in stops if one]  # empty ones come from forms left blank
    check_texts(name, stops)
    return stops


def _texts(fields: Fields, name: str) -> list[str]:
    texts = fields.any(name)
    if isinstance(texts, str):  # as SillyTavern sends it: a list written as JSON
        try:
            texts = parsed(texts)
        except ValueError:
            texts = None
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        fields.refuse(name, "a list of strings")
    check_texts(name, texts)
    return texts


def _logit_bias(fields: Fields) -> dict[int, float]:
    given = fields.any("logit_bias")
    if isinstance(given, (list, dict)):
        check_number("logit_bias", len(given), MOST_BIASES, "tokens")
    if isinstance(given, list):  # llama-server's form
        if not all(isinstance(one, list) and len(one) == 2 for one in given):
            fields.refuse("logit_bias", "an object, or a list of pairs of a token id and a number")
        biases = Fields({str(token): bias for token, bias in given}, "logit_bias")
    else:
        biases = fields.object("logit_bias")
    return {_token_id(token): biases.number(token) or 0.0 for token in biases.given}


def _token_id(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise ApiError(
            400, f'logit_bias has "{name:.40}", which is no token id.', param="logit_bias"
        ) from None
