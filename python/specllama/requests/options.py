"""The options of a generation: those of the core's table, and those that only Python has. Python
callers, the server and the command lines all take names, types, ranges and defaults from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from typing_extensions import TypedDict, Unpack

from specllama import _check, _core
from specllama._field import Check, Field, completed, described
from specllama.requests import read
from specllama.requests.grammar import constraint
from specllama.requests.schema.schema_grammar import SchemaGrammar


@completed
class GenerateOptions(TypedDict, total=False):
    """Options of `generate`, `stream`, `submit` and the other methods that generate. All are
    optional keyword arguments.

    The sampling steps run in llama.cpp's order: bias, penalties, DRY, grammar, top_n_sigma, top_k,
    typical_p, top_p, min_p, XTC, temperature.
    """

    media: Sequence[Any] | None
    max_tokens: int | None
    stop: str | Iterable[str] | None
    echo: bool
    temperature: float
    top_n_sigma: float
    top_k: int
    typical_p: float
    top_p: float
    min_p: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    repeat_last_n: int
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: str | Iterable[str] | None
    logit_bias: Mapping[int, float] | None
    ignore_eos: bool
    logprobs: int | None
    processed_logprobs: bool
    seed: int | None
    acceptance: Literal["coupled", "rejection"]
    lenience: float
    grammar: str | None
    json_schema: str | Mapping[str, Any] | type | SchemaGrammar | None
    regex: str | None
    grammar_triggers: str | Iterable[str] | None
    reasoning_budget: int | None
    reference: str | Iterable[int] | None
    cache_prompt: bool
    id_slot: int
    message_ends: Iterable[int] | None
    spec_length: int | None
    spec_type: Literal["auto", "none", "model", "ngram"]
    remember: bool
    trace: bool


_READ: dict[str, Check] = {
    "max_tokens": read.most_tokens,
    "dry_sequence_breakers": _check.texts,  # None: none
    "top_k": read.most_likely,
    "logit_bias": read.biases,
    "seed": read.seed,
    "grammar": read.anything,
    "reference": read.reference,
    "message_ends": read.ends,
}
"""Readers of the options whose type alone does not decide how they are read."""

_OWN = (
    Field(
        "media",
        read.anything,
        "List of images for a text prompt, which has the text `<__media__>` in the place of each. "
        "Each is a path, the bytes of a file, a data URL, a Pillow image or an array.",
    ),
    Field("echo", _check.flag, "Put the prompt before the text.", "flag", False, "off"),
    Field(
        "json_schema",
        read.anything,
        "JSON schema that the output must follow, as a dict or a text, instead of a grammar. {}: "
        "any JSON value. Or a type: a pydantic model, a dataclass or a TypedDict.",
    ),
    Field(
        "regex",
        read.anything,
        "Regular expression that the whole output must match, instead of a grammar. The syntax is "
        "that of Rust's regex crate: no look-around and no back-references.",
    ),
)
"""Options that only Python has."""

_ALL = {
    **{one.name: Field.of(one, _READ.get(one.name)) for one in _core.generate_options()},
    **{one.name: one for one in _OWN},
}

FIELDS: Mapping[str, Field] = {name: _ALL[name] for name in GenerateOptions.__annotations__}
"""The table: each option by its name."""


_SUMMARY = (GenerateOptions.__doc__ or "").rstrip()
GenerateOptions.__doc__ = f"{_SUMMARY}\n{described(FIELDS, {'media': 'Attributes'})}\n"


_ELSEWHERE = {
    **{
        alias: f"{alias} is called {name} here."
        for name, field in FIELDS.items()
        for alias in field.aliases
    },
    **{
        name: f"{name} is called {ours} here."
        for name, ours in (
            ("num_return_sequences", "n"),
            ("do_sample", "temperature"),
        )
    },
    "stream": "stream is a method here: session.stream(prompt), or stream_chat(messages).",
    "suffix": "suffix is for session.infill(prefix, suffix).",
    "response_format": "response_format is an option of the server; give json_schema or grammar.",
    "tools": "tools is an option of chat, achat, stream_chat and submit_chat: "
    "session.chat(messages, tools=[...]).",
    "chat_template": "chat_template is an option of SpecSession.",
    "n": "n is an option of generate, chat and infill, of their async twins, and of submit, "
    "submit_chat and submit_infill; everything else gives one text.",
    "num_beams": "For beam search, call session.beam_search(prompt, n_beams=4).",
    **{
        name: f"{name} is an option of session.beam_search, which also takes the token ids that "
        "render_chat returns."
        for name in ("n_beams", "length_penalty", "early_stopping")
    },
}
"""Error messages for the names of options that only other libraries, or only some methods, have."""


def _unknown(name: str) -> str:
    if name in {option.name for option in _core.session_options()}:
        return f"{name} is an option of SpecSession, not of a generation."
    alike = get_close_matches(name, FIELDS, n=1)
    meant = f"; did you mean {alike[0]}?" if alike else "."
    return f"There is no option {_check.quoted(name)} of a generation{meant}"


def checked(options: GenerateOptions) -> dict[str, Any]:
    """Return the values of all options in the form the core takes. Defaults are filled in, and a
    JSON schema is turned into a grammar.

    Raises:
        ArgumentError: A value is of a wrong type.
        TypeError: There is no such option.
    """
    for name in options:
        if name not in FIELDS:
            raise TypeError(_ELSEWHERE.get(name) or _unknown(name))
    given: dict[str, Any] = {name: FIELDS[name].check(name, one) for name, one in options.items()}
    values = {name: field.default for name, field in FIELDS.items()} | given
    values["grammar"], values["grammar_syntax"] = constraint(
        given.get("grammar"), values.pop("json_schema"), values.pop("regex")
    )
    return values


def sampling_options(**options: Unpack[GenerateOptions]) -> _core.SamplingOptions:
    """Check options; return those that the core's sampler takes. Raises what `checked` raises."""
    values = checked(options)
    names = [one.name for one in _core.sampling_options()]
    return _core.SamplingOptions(**{name: values[name] for name in names if name in values})
