"""Reads the options of a generation from the fields of a request."""

from __future__ import annotations

from typing import Any, cast

from specllama._field import INT32, Field
from specllama.requests.json_text import parsed
from specllama.requests.options import FIELDS, GenerateOptions
from specllama.server.body.constraint import read_constraint
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_BIASES, check_number, check_texts
from specllama.server.error import ApiError

_SPEC_TYPES = {"draft-": "model", "ngram-": "ngram"}
"""Prefixes of llama-server's names, and our names."""


def read_options(fields: Fields, defaults: GenerateOptions) -> GenerateOptions:
    """Return the options that all endpoints have in common. Raises ApiError."""
    options: dict[str, Any] = {**defaults}
    for name, option in FIELDS.items():
        given = [one for one in (*option.aliases, option.field) if one and one in fields]
        if option.field and given:
            options[name] = _value(fields, given[-1], option)
    if fields.integer("n_cache_reuse", low=0, high=INT32):
        raise ApiError(
            400,
            "n_cache_reuse is not supported: tokens in the KV memory cannot be moved to other "
            "positions; leave it out.",
            param="n_cache_reuse",
            code="unsupported",
        )
    options["stop"] = stop_strings(fields)
    options.update(read_constraint(fields))
    return cast(GenerateOptions, options)


def _value(fields: Fields, name: str, option: Field) -> Any:
    """Return the value of an option from the field of this name. Raises ApiError."""
    if option.name == "seed":
        seed = fields.integer(name, low=-(2**63), high=2**64 - 1)
        # -1: a fresh seed, as in llama-server.
        return None if seed is None or seed == -1 else seed % 2**64
    if option.name == "logit_bias":
        return _logit_bias(fields)
    if option.name == "spec_type":
        return _spec_type(fields, name)
    if option.kind == "integer":
        return fields.integer(name, low=int(option.low), high=INT32)
    if option.kind == "flag":
        return fields.flag(name)
    return _texts(fields, name) if option.kind == "texts" else fields.number(name)


def _spec_type(fields: Fields, name: str) -> str:
    """Return the drafters that may draft, from our or llama-server's names, separated by commas."""
    kinds = set()
    for one in fields.text(name).split(","):
        kind = next((kind for begin, kind in _SPEC_TYPES.items() if one.startswith(begin)), one)
        if kind not in ("auto", "none", "model", "ngram"):
            fields.refuse(name, '"auto", "none", "model", "ngram", or a type of llama-server')
        kinds.add(kind)
    kinds -= {"none"} if len(kinds) > 1 else set()
    return kinds.pop() if len(kinds) == 1 else "auto"


def most_tokens(fields: Fields, *names: str, default: int | None = None) -> int | None:
    """Return the maximum number of tokens to generate: the first of these fields that was given,
    else `default`. None: as many as the context holds; -1 means this, as in llama-server. Raises
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
    if isinstance(texts, str):  # SillyTavern sends a list written as JSON
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
            400, f'logit_bias has "{name:.40}", which is not a token id.', param="logit_bias"
        ) from None
