"""The table of options, and that callers, documents, command lines and the server agree with it."""

from __future__ import annotations

import argparse
import math
from typing import Any

import pytest
from folders import DOCS
from specllama import ArgumentError, GenerateOptions, _core
from specllama.__main__ import main
from specllama.commands._arguments import with_flags
from specllama.requests.options import FIELDS, checked, sampling_options
from specllama.server.error import ApiError
from specllama.server.fields import Fields
from specllama.server.sampling import read_options
from specllama.server.settings import Settings

SAMPLED = [
    name
    for name, field in FIELDS.items()
    if field.range is not None and name != "max_tokens"  # which only a context can bound
]


def accept(name: str, value: float) -> None:
    """Have the core's sampler take a value."""
    options: dict[str, Any] = {name: value}
    if name == "lenience":
        options["acceptance"] = "rejection"
    _core.Sampler(sampling_options(**options), 8)


@pytest.mark.parametrize("name", SAMPLED)
def test_the_core_enforces_the_documented_ranges(name: str) -> None:
    field = FIELDS[name]
    assert field.range is not None
    low, high = field.range.low, field.range.high
    step = 1 if field.kind is int else 1e-3
    inside = [low + step if field.range.above else low, high]
    outside = [low if field.range.above else low - step, high + step]
    for value in (value for value in inside if math.isfinite(value)):
        accept(name, field.kind(value))
    for value in outside:
        with pytest.raises(ArgumentError, match=name):
            accept(name, field.kind(value) if math.isfinite(value) else value)


def test_defaults_equal_explicit_default_values() -> None:
    given: Any = {name: field.default for name, field in FIELDS.items()}
    assert checked({})["stop"] == checked(given)["stop"] == []
    assert checked({})["max_tokens"] is None
    assert checked({"max_tokens": None})["max_tokens"] == -1


def test_an_unknown_option_raises_type_error() -> None:
    with pytest.raises(TypeError, match="no option 'temperatur' of"):
        checked({"temperatur": 1})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_new_tokens", "is called max_tokens here"),
        ("repetition_penalty", "is called repeat_penalty here"),
        ("stream", r"session\.stream\(prompt\)"),
        ("tools", "are the server's"),
    ],
)
def test_names_of_other_libraries_give_a_hint(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        checked({name: 1})  # type: ignore[misc]


def test_minus_one_means_no_limit_and_a_fresh_seed() -> None:
    """As llama.cpp has it: no limit, and a fresh seed."""
    assert checked({"max_tokens": -1, "seed": -1})["max_tokens"] == -1
    assert checked({"max_tokens": -1, "seed": -1})["seed"] is None


def test_docstring_has_every_option() -> None:
    text = " ".join((GenerateOptions.__doc__ or "").split())
    for name, field in FIELDS.items():
        assert f"{name}: {field.doc} ({field.by_default}" in text


def test_docs_have_every_option() -> None:
    rows = [
        f"| `{name}` | {field.by_default} | {field.range or ''} | {field.brief} |"
        for name, field in FIELDS.items()
    ]
    assert "\n".join(rows) in (DOCS / "python.md").read_text()


def test_server_fields_are_documented_and_read() -> None:
    document = (DOCS / "server.md").read_text()
    named = {name: field.api for name, field in FIELDS.items() if field.api is not None}
    for name, api in named.items():
        assert f"`{api}`" in document
        field = FIELDS[name]
        assert field.range is not None
        value = field.kind(max(0.5, field.range.low))
        assert read_options(Fields({api: value}), {})[name] == value  # type: ignore[literal-required]
    assert read_options(Fields({}), Settings("model").sampling)["temperature"] == 1.0


@pytest.mark.parametrize("name", ["ignore_eos", "cache_prompt"])
def test_server_fields_that_are_flags_must_be_booleans(name: str) -> None:
    assert name not in read_options(Fields({}), {})
    for value in (True, False):
        assert read_options(Fields({name: value}), {})[name] is value  # type: ignore[literal-required]
    with pytest.raises(ApiError, match=f"{name} must be true or false"):
        read_options(Fields({name: 1}), {})


def test_server_takes_dry_sequence_breakers_as_list_or_json() -> None:
    for given in (["\n", "x"], '["\\n", "x"]'):
        options = read_options(Fields({"dry_sequence_breakers": given}), {})
        assert options["dry_sequence_breakers"] == ["\n", "x"]
    for wrong in ("x", 3, [1], {"a": "b"}, "[" * 100_000):
        with pytest.raises(ApiError, match="dry_sequence_breakers must be a list of strings"):
            read_options(Fields({"dry_sequence_breakers": wrong}), {})


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("chat", [name for name in FIELDS if FIELDS[name].flags]),
        ("trace", [name for name in FIELDS if FIELDS[name].flags]),
        ("divergence", ["temperature"]),
    ],
)
def test_command_help_has_every_option(
    capsys: pytest.CaptureFixture[str], command: str, names: list[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert len(names) > 0
    for name in names:
        field = FIELDS[name]
        assert f"{field.brief[1:]} ({field.by_default})" in text
        assert all(flag in text for flag in field.flags)


def test_errors_name_options_by_their_flags() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--n-predict", type=int)
    parser.add_argument("-c", "--ctx-size", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--temp", dest="temperature", type=float)
    for message, said in (
        ("max_tokens is 9; lower it, or raise n_ctx.", "-n is 9; lower it, or raise -c."),
        ("top_p must be a number.", "--top-p must be a number."),
        ("temperature must be 0.", "--temp must be 0."),
        ("n_beams and n_ctx: no.", "n_beams and -c: no."),
        ("my/top_p cannot be read.", "my/top_p cannot be read."),
        ("There is no file top_p.txt; look.", "There is no file top_p.txt; look."),
        ("The prompt is empty.", "The prompt is empty."),
    ):
        assert with_flags(message, parser) == said
