"""The one table of a generation's options. Names, types, ranges and defaults come from here,
whether a caller, a request to the server or a command line gives the options."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_type_hints

from typing_extensions import TypedDict, Unpack

from specllama import _check, _core
from specllama.requests import read
from specllama.requests.field import INT32, Field, Range
from specllama.requests.grammar import constraint
from specllama.requests.schema.schema_grammar import SchemaGrammar


class GenerateOptions(TypedDict, total=False):
    """Options that `generate`, `stream`, `submit` and the others take besides the prompt; all are
    keyword arguments, and all are optional.

    The steps of sampling run in llama.cpp's order: bias, penalties, DRY, grammar, top_n_sigma,
    top_k, typical_p, top_p, min_p, XTC, temperature.
    """

    max_tokens: Annotated[int | None, Field(
        ..., "256, or until the context is full", read.most_tokens,
        "Most tokens to generate. The context must have room for them. None or -1: until it is "
        "full.",
        int, Range(-1, INT32),
    )]  # fmt: skip
    stop: Annotated[str | Iterable[str] | None, Field(
        None, "none", _check.texts, "Text, or several, before which the generation ends.",
    )]  # fmt: skip
    echo: Annotated[bool, Field(False, "False", _check.flag, "Put the prompt before the text.")]
    temperature: Annotated[float, Field(
        0.0, "0", _check.number,
        "0 is greedy: the most likely token, always; more: less likely ones, too.",
        float, Range(0), ("--temp", "--temperature"), "temperature",
    )]  # fmt: skip
    top_n_sigma: Annotated[float, Field(
        0.0, "0: off", _check.number,
        "Only tokens whose logits are at most this many standard deviations below the highest; 0 "
        "or -1: all. The deviation is of the logits after the steps before (Tang et al. 2024).",
        float, Range(-1), ("--top-nsigma", "--top-n-sigma"), "top_n_sigma",
    )]  # fmt: skip
    top_k: Annotated[int, Field(
        0, "0: off", read.most_likely, "Only the k most likely tokens; 0 or -1: all.",
        int, Range(-1, INT32), ("--top-k",), "top_k",
    )]  # fmt: skip
    typical_p: Annotated[float, Field(
        1.0, "1: off", _check.number,
        "Only the tokens that are nearly as surprising as the average one, together this likely. "
        "Locally typical sampling (Meister et al. 2023); it may leave the likeliest token out.",
        float, Range(0, 1), ("--typical", "--typical-p"), "typical_p",
    )]  # fmt: skip
    top_p: Annotated[float, Field(
        1.0, "1: off", _check.number,
        "Only the most likely tokens that together are this likely, at least one.",
        float, Range(0, 1), ("--top-p",), "top_p",
    )]  # fmt: skip
    min_p: Annotated[float, Field(
        0.0, "0: off", _check.number,
        "Only tokens at least this fraction as likely as the most likely one.",
        float, Range(0, 1), ("--min-p",), "min_p",
    )]  # fmt: skip
    xtc_probability: Annotated[float, Field(
        0.0, "0: off", _check.number,
        "How often the top choices are excluded. "
        "Then, of the tokens at least xtc_threshold likely, only the least likely one is left "
        "(XTC, by p-e-w, 2024). It depends on seed and position whether they are.",
        float, Range(0, 1), ("--xtc-probability",), "xtc_probability",
    )]  # fmt: skip
    xtc_threshold: Annotated[float, Field(
        0.1, "0.1", _check.number,
        "How likely a top choice is at least; above 0.5 nothing is excluded.",
        float, Range(0, 1), ("--xtc-threshold",), "xtc_threshold",
    )]  # fmt: skip
    repeat_penalty: Annotated[float, Field(
        1.0, "1: off", _check.number,
        "Divides positive and multiplies negative logits of recent tokens.",
        float, Range(0, above=True), ("--repeat-penalty",), "repeat_penalty",
    )]  # fmt: skip
    frequency_penalty: Annotated[float, Field(
        0.0, "0: off", _check.number,
        "Taken off the logits of recent tokens, for each occurrence.",
        float, Range(), ("--frequency-penalty",), "frequency_penalty",
    )]  # fmt: skip
    presence_penalty: Annotated[float, Field(
        0.0, "0: off", _check.number, "Taken off the logits of recent tokens, once.",
        float, Range(), ("--presence-penalty",), "presence_penalty",
    )]  # fmt: skip
    penalty_last_n: Annotated[int, Field(
        64, "64", _check.integer,
        "How many tokens, the prompt's included, are recent; -1: all.",
        int, Range(-1, INT32), ("--repeat-last-n",), "repeat_last_n",
    )]  # fmt: skip
    dry_multiplier: Annotated[float, Field(
        0.0, "0: off", _check.number,
        "Penalises tokens that lengthen a repetition. "
        "DRY, \"don't repeat yourself\" (p-e-w, 2024): a token that followed the last `length` "
        "tokens before loses dry_multiplier * dry_base ** (length - dry_allowed_length).",
        float, Range(0), ("--dry-multiplier",), "dry_multiplier",
    )]  # fmt: skip
    dry_base: Annotated[float, Field(
        1.75, "1.75", _check.number, "How fast that grows with the repetition.",
        float, Range(1), ("--dry-base",), "dry_base",
    )]  # fmt: skip
    dry_allowed_length: Annotated[int, Field(
        2, "2", _check.integer, "Repetitions of fewer tokens are not penalised by DRY.",
        int, Range(1, INT32), ("--dry-allowed-length",), "dry_allowed_length",
    )]  # fmt: skip
    dry_penalty_last_n: Annotated[int, Field(
        64, "64", _check.integer,
        "How many tokens, the prompt's included, DRY looks at; -1: all, 0: none.",
        int, Range(-1, INT32), ("--dry-penalty-last-n",), "dry_penalty_last_n",
    )]  # fmt: skip
    dry_sequence_breakers: Annotated[str | Iterable[str] | None, Field(
        ("\n", ":", '"', "*"), "newline, colon, quotation mark, asterisk", _check.texts,
        "Texts where a repetition ends for DRY: what comes before is not compared. None: none.",
    )]  # fmt: skip
    logit_bias: Annotated[Mapping[int, float] | None, Field(
        None, "none", read.biases,
        "Added to the logits of token ids; minus infinity forbids one.",
    )]  # fmt: skip
    ignore_eos: Annotated[bool, Field(
        False, "False", _check.flag,
        "Forbid the tokens that end a text. It ends where a grammar leaves no other.",
    )]  # fmt: skip
    logprobs: Annotated[int | None, Field(
        None, "none", read.logprobs,
        "Log-probabilities of each token and of this many most likely ones at its position.",
        int, Range(0, 100),
    )]  # fmt: skip
    processed_logprobs: Annotated[bool, Field(
        False, "False", _check.flag,
        "They are those after the steps above, not those of the model itself.",
    )]  # fmt: skip
    seed: Annotated[int | None, Field(
        None, "a fresh one", read.seed,
        "Same seed, same tokens, whoever drafts. It is reported in `Generation.stats.seed`. None "
        "or -1: a fresh one.",
        int, Range(-1, 2**64 - 1), ("-s", "--seed"),
    )]  # fmt: skip
    acceptance: Annotated[Literal["coupled", "rejection"], Field(
        "coupled", '"coupled"', read.acceptance,
        "What becomes of drafts at temperatures above 0. "
        '"coupled": kept if they are what the model chooses with this seed, so that the same seed '
        'gives the same tokens whoever drafts. "rejection": kept with probability p / q (Leviathan '
        "et al. 2023, algorithm 1), which is more often; the output has the same distribution, but "
        "which text comes depends on the drafter, too.",
    )]  # fmt: skip
    lenience: Annotated[float, Field(
        1.0, "1: off", _check.number,
        "Below 1, rejection keeps more, and the output is no longer the model's. "
        "q is scaled by it in the test of p / q: no token comes more often than with p / lenience "
        "(Leviathan et al. 2023, appendix A.5). At temperature 0, a draft token at least this "
        "fraction as likely as the likeliest is kept.",
        float, Range(0, 1, above=True),
    )]  # fmt: skip
    grammar: Annotated[str | None, Field(
        None, "none", read.anything,
        "A grammar that the output must follow, in GBNF, or in llguidance's Lark, whose first line "
        "is %llguidance {}. The output may end early by max_tokens or a stop string.",
    )]  # fmt: skip
    json_schema: Annotated[str | Mapping[str, Any] | type | SchemaGrammar | None, Field(
        None, "none", read.anything,
        "A JSON schema, as a dict or as text, that the output must follow, instead of a grammar; "
        "{}: any JSON value. Or a type: a pydantic model, a dataclass, a TypedDict.",
    )]  # fmt: skip
    regex: Annotated[str | None, Field(
        None, "none", read.anything,
        "A regular expression that the whole output must match, instead of a grammar, in the "
        "syntax of Rust's regex: no look-around, no back-references.",
    )]  # fmt: skip
    grammar_triggers: Annotated[str | Iterable[str] | None, Field(
        None, "none", _check.texts,
        "Text, or several, at the first of which the grammar begins, that text included. "
        "Before it anything may come. None: the grammar holds from the start.",
    )]  # fmt: skip
    reasoning_budget: Annotated[int | None, Field(
        None, "any number", read.budget,
        "Most tokens that a thinking model thinks before it answers. After these comes the text "
        'that ends a thought, such as "</think>"; 0: it does not think. A thought is limited if '
        "the prompt ends with its opening, or the text begins with it; where a grammar has begun, "
        "there is no limit. None or -1: any number.",
        int, Range(-1, INT32), ("--reasoning-budget",), "reasoning_budget_tokens",
    )]  # fmt: skip
    reference: Annotated[str | Iterable[int] | None, Field(
        None, "none", read.reference,
        "A text, or token ids, that the n-gram drafter may copy from besides prompt and "
        "generation. For example the file being edited, or retrieved documents. It is no part of "
        "the prompt; it changes the speed, not the text, as drafters do.",
    )]  # fmt: skip
    cache_prompt: Annotated[bool, Field(
        True, "True", _check.flag,
        "Use what the memory holds of the prompt already instead of decoding all of it. How much "
        "that is may change how sums are rounded, unless the session is exact, and with that the "
        "text of a seed.",
    )]  # fmt: skip
    trace: Annotated[bool, Field(
        False, "False", _check.flag, "Keep in `Generation.trace` what every round did.",
    )]  # fmt: skip


FIELDS: Mapping[str, Field] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(GenerateOptions, include_extras=True).items()
}
"""The table: each option's field, by the option's name."""

_OF_REQUEST = {
    "max_tokens",
    "stop",
    "echo",
    "json_schema",
    "regex",
    "reference",
    "cache_prompt",
    "trace",
}
"""Options that concern the request, so the core's sampler does not take them."""


def _described(name: str, field: Field) -> str:
    values = "" if field.range is None or str(field.range) == "any" else f"; {field.range}"
    text = f"{name}: {field.doc} ({field.by_default}{values})"
    return textwrap.fill(text, 96, initial_indent=" " * 8, subsequent_indent=" " * 12)


GenerateOptions.__doc__ = "\n".join([
    f"{(GenerateOptions.__doc__ or '').rstrip()}\n",
    "    Attributes, with what they are by default and may be:",
    *(_described(*one) for one in FIELDS.items()),
])  # fmt: skip


_ELSEWHERE = {
    **{
        name: f"{name} is called {ours} here."
        for name, ours in (
            ("max_new_tokens", "max_tokens"),
            ("n_predict", "max_tokens"),
            ("temp", "temperature"),
            ("repetition_penalty", "repeat_penalty"),
            ("num_return_sequences", "n"),
            ("do_sample", "temperature"),
        )
    },
    "stream": "stream is a method here: session.stream(prompt), or stream_chat(messages).",
    "suffix": "suffix is for session.infill(prefix, suffix).",
    "response_format": "response_format is the server's; give json_schema, or grammar.",
    "tools": "tools are the server's; template_args={'tools': [...]} shows them to the model.",
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
"""Error messages, by the name of an option that other libraries, or only some methods, have."""


def checked(options: GenerateOptions) -> dict[str, Any]:
    """Return the values of all options in the form the core takes. Defaults are filled in, and a
    JSON schema is turned into a grammar.

    Raises:
        ArgumentError: A value is of a wrong type.
        TypeError: There is no such option.
    """
    given: dict[str, Any] = {**options}
    for name in given:
        if name not in FIELDS:
            raise TypeError(
                _ELSEWHERE.get(name, f"There is no option {_check.quoted(name)} of a generation.")
            )
    values = {
        name: field.check(name, given.get(name, field.default)) for name, field in FIELDS.items()
    }
    values["grammar"], values["grammar_syntax"] = constraint(
        values["grammar"], values.pop("json_schema"), values.pop("regex")
    )
    values |= {"reasoning_opening": "", "reasoning_closing": ""}  # which depend on the model
    return values


def sampling(values: Mapping[str, Any]) -> _core.SamplingOptions:
    """Return those of the `checked` options that the core's sampler takes."""
    return _core.SamplingOptions(
        **{name: value for name, value in values.items() if name not in _OF_REQUEST}
    )


def sampling_options(**options: Unpack[GenerateOptions]) -> _core.SamplingOptions:
    """Check options; return those that the core's sampler takes. Raises what `checked` raises."""
    return sampling(checked(options))
