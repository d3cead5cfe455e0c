"""The table of options, and that callers, documents, command lines and the server agree with it."""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
from typing import Any, get_type_hints

import pytest
from folders import DOCS
from session_options import Open
from specllama import ArgumentError, GenerateOptions, _core
from specllama.__main__ import main
from specllama._field import Field
from specllama.commands import _arguments
from specllama.commands._arguments import with_flags
from specllama.model.session_options import FIELDS as SESSION
from specllama.model.session_options import SessionOptions
from specllama.requests.options import FIELDS, checked, sampling_options
from specllama.server.body.fields import Fields
from specllama.server.body.sampling import read_options
from specllama.server.error import ApiError
from specllama.server.settings import Settings

SAMPLED = [
    one
    for one in _core.sampling_options()
    if one.kind in ("integer", "number") and one.name != "seed"  # Python checks the seed
]
OF_KIND = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "text": "str",
    "texts": "Iterable",
    "numbers": "Sequence",
    "switch": "bool",
    "choice": "Literal",
}
"""Text in the annotation for each kind of option."""


def accept(name: str, value: float) -> None:
    """Pass a value to the core's sampler."""
    options: dict[str, Any] = {name: value}
    if name == "lenience":
        options["acceptance"] = "rejection"
    _core.Sampler(sampling_options(**options), 8)


@pytest.mark.parametrize("option", SAMPLED, ids=[one.name for one in SAMPLED])
def test_the_core_enforces_the_documented_ranges(option: _core.Option) -> None:
    kind = int if option.kind == "integer" else float
    step = 1 if kind is int else 1e-3
    inside = [option.low + step if option.above_low else option.low, option.high]
    outside = [option.low if option.above_low else option.low - step, option.high + step]
    for value in (value for value in inside if math.isfinite(value)):
        accept(option.name, kind(value))
    for value in outside:
        with pytest.raises(ArgumentError, match=option.name):
            accept(option.name, kind(value) if math.isfinite(value) else value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("top_p", 2, "top_p must be from 0 to 1 (1: off), not 2."),
        ("repeat_penalty", 0, "repeat_penalty must be more than 0 (1: off), not 0."),
        ("repeat_last_n", -2, "repeat_last_n must be -1 or more (-1: all; 0: off), not -2."),
        (
            "frequency_penalty",
            math.inf,
            "frequency_penalty must be a finite number (0: off), not inf.",
        ),
        ("temperature", -0.5, "temperature must be 0 or more (0: greedy), not -0.5."),
    ],
)
def test_errors_name_the_range_special_values_and_the_value(
    name: str, value: float, message: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        accept(name, value)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("typed", "fields", "lines"),
    [
        (GenerateOptions, FIELDS, _core.generate_options()),
        (SessionOptions, SESSION, [*_core.session_options(), *_core.ngram_options()]),
    ],
)
def test_typed_options_equal_the_table_of_the_core(
    typed: type, fields: dict[str, Field], lines: list[_core.Option]
) -> None:
    """Editors complete the typed options; the core uses its table."""
    hints = get_type_hints(typed)
    assert list(fields) == list(hints)
    for line in lines:
        if line.name != "verifies":  # the server's option
            assert (line.name in hints) == bool(line.help), line.name
        if line.name not in hints or not line.kind:
            continue
        hint = str(hints[line.name])
        assert ("None" in hint or "Optional" in hint) == line.optional, line.name
        assert OF_KIND["choice" if line.kind == "text" and line.choices else line.kind] in hint
        if line.kind != "switch":
            assert all(repr(one) in hint for one in line.choices), line.name


def test_the_defaults_of_options_are_those_of_the_core() -> None:
    assert checked({})["stop"] == []
    assert checked({})["max_tokens"] is None
    assert checked({"max_tokens": None})["max_tokens"] == -1
    assert checked({"logprobs": None})["logprobs"] == checked({})["logprobs"] == -1
    assert checked({"dry_sequence_breakers": None})["dry_sequence_breakers"] == []


def test_an_unknown_option_raises_type_error() -> None:
    with pytest.raises(TypeError, match="no option 'temperatur' of"):
        checked({"temperatur": 1})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_new_tokens", "is called max_tokens here"),
        ("repetition_penalty", "is called repeat_penalty here"),
        ("stream", r"session\.stream\(prompt\)"),
        ("tools", "is an option of chat"),
        ("exact", r"^exact is an option of SpecSession, not of a generation\."),
    ],
)
def test_option_names_of_other_libraries_give_a_hint(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        checked({name: 1})  # type: ignore[misc]


def test_minus_one_means_no_limit_and_a_fresh_seed() -> None:
    """As in llama.cpp."""
    assert checked({"max_tokens": -1, "seed": -1})["max_tokens"] == -1
    assert checked({"max_tokens": -1, "seed": -1})["seed"] is None


def test_docstrings_document_every_option() -> None:
    for typed, fields in ((GenerateOptions, FIELDS), (SessionOptions, SESSION)):
        text = " ".join((typed.__doc__ or "").split())
        for name, field in fields.items():
            assert " ".join(f"{name}: {field.help} (Default: {field.by_default}".split()) in text


def test_docs_have_the_option_tables_of_the_commands() -> None:
    """If this fails, run tools/write_options.py."""
    path = DOCS.parent / "tools" / "write_options.py"
    found = importlib.util.spec_from_file_location("write_options", path)
    assert found is not None
    assert found.loader is not None
    found.loader.exec_module(writer := importlib.util.module_from_spec(found))
    for page, tables in writer.TABLES.items():
        text = (DOCS / page).read_text()
        assert writer.written(text, tables) == text


def test_help_lines_begin_with_a_noun_or_a_verb() -> None:
    for field in (*FIELDS.values(), *SESSION.values()):
        assert field.help.rstrip(")").endswith(".")
        assert field.brief[0].isupper()
        assert not re.match(r"(the|a|an|how|what|who|whether|as|by|if) ", field.brief.lower())


def test_server_reads_numbers_by_field_and_by_alias() -> None:
    for name, option in FIELDS.items():
        if not option.field or option.kind not in ("integer", "number"):
            continue
        value: float = 1 if option.kind == "integer" else 0.5
        for field in (option.field, *option.aliases):
            assert read_options(Fields({field: value}), {})[name] == value  # type: ignore[literal-required]
    assert read_options(Fields({}), Settings("model").sampling)["temperature"] == 1.0


@pytest.mark.parametrize("name", ["ignore_eos", "cache_prompt"])
def test_server_fields_that_are_flags_must_be_booleans(name: str) -> None:
    assert name not in read_options(Fields({}), {})
    for value in (True, False):
        assert read_options(Fields({name: value}), {})[name] is value  # type: ignore[literal-required]
    with pytest.raises(ApiError, match=f"{name} must be true or false"):
        read_options(Fields({name: 1}), {})


def test_server_accepts_dry_sequence_breakers_as_list_or_json() -> None:
    for given in (["\n", "x"], '["\\n", "x"]'):
        options = read_options(Fields({"dry_sequence_breakers": given}), {})
        assert options["dry_sequence_breakers"] == ["\n", "x"]
    for wrong in ("x", 3, [1], {"a": "b"}, "[" * 100_000):
        with pytest.raises(ApiError, match="dry_sequence_breakers must be a list of strings"):
            read_options(Fields({"dry_sequence_breakers": wrong}), {})


@pytest.mark.parametrize("command", ["chat", "trace", "serve", "demo"])
def test_command_help_has_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = re.sub(r"-\s+", "-", " ".join(capsys.readouterr().out.split()))
    fields = [SESSION[name] for name in _arguments.SESSION]
    if command != "demo":
        fields += [field for field in FIELDS.values() if field.field and field.flags]
    for field in fields:
        assert field.brief[1:] in text
        assert all(flag in text for flag in field.flags)
        if field.kind == "flag" and field.default:
            assert f"do not {field.brief[0].lower()}{field.brief[1:]}" in text
        elif (command, field.name) != ("serve", "temperature"):
            assert f"(default: {field.by_default})" in text


def test_errors_name_options_by_their_flags() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--n-predict", type=int)
    parser.add_argument("-c", "--ctx-size", dest="n_ctx", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--temp", dest="temperature", type=float)
    for message, said in (
        ("max_tokens is 9; lower it, or raise n_ctx.", "-n is 9; lower it, or raise -c."),
        ("top_p must be a number.", "--top-p must be a number."),
        ("temperature must be 0.", "--temp must be 0."),
        ("Another temperature is needed.", "Another temperature is needed."),
        ("n_beams and n_ctx: no.", "n_beams and -c: no."),
        ("my/top_p cannot be read.", "my/top_p cannot be read."),
        ("There is no file top_p.txt; look.", "There is no file top_p.txt; look."),
        ("The prompt is empty.", "The prompt is empty."),
    ):
        assert with_flags(message, parser) == said


def test_a_mistyped_option_gets_a_suggestion(open_session: Open) -> None:
    session = open_session()
    with pytest.raises(TypeError, match=r"option 'max_token' of a .*mean max_tokens\?"):
        session.generate("x", max_token=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"There is no option 'zzz' of a generation\.$"):
        session.generate("x", zzz=3)  # type: ignore[call-overload]
