"""Texts that are generated for JSON schemas are valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from folders import DATA
from grammar_draws import read
from pydantic import BaseModel
from schemas import held, values
from scripted_model import BOS
from session_options import Open
from specllama import ArgumentError, SpecSession

SUITE = DATA / "json_schema_test_suite" / "draft2020-12.jsonl"


@pytest.fixture
def session(open_session: Open) -> SpecSession:
    return open_session(draft=None)


COLORS = {"enum": ["red", "blue"]}
NODE = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    "schema",
    [
        held({"type": "integer", "minimum": 3, "maximum": 7}),
        held({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
        held({"type": "string", "minLength": 2, "maxLength": 5}),
        held({"type": "string", "pattern": "^[a-c]+-[0-9]{2}$"}),
        held({"type": "string", "format": "date-time"}),
        held({"type": "array", "items": COLORS, "minItems": 1, "maxItems": 3}),
        held({"enum": ["x\\y", 'q"r', "\n", "\U0001f600", None, 1.5, [{}]]}),
        held({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}) | {"$defs": {"node": NODE}},
        {"type": "object", "propertyNames": COLORS, "additionalProperties": {"type": "integer"},
         "minProperties": 1},
        {"type": "object", "patternProperties": {"^[a-z]{1,3}$": {"type": "boolean"}},
         "additionalProperties": False, "minProperties": 1, "maxProperties": 3},
    ],
)  # fmt: skip
def test_generated_values_follow_their_json_schema(session: SpecSession, schema: Any) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    for found in values(session, schema):
        assert validator.is_valid(found), found
        assert isinstance(found, dict)
        assert found  # {} would be valid for some schemas


def test_generated_values_follow_schemas_of_the_test_suite(session: SpecSession) -> None:
    cases = [json.loads(line) for line in SUITE.read_text().splitlines()]
    n_valid = 0
    for case in cases[::9]:
        if (grammar := read(case["schema"], strict=True)) is None:
            continue
        options: dict[str, Any] = {"max_tokens": 300, "temperature": 1.5, "seed": 1}
        found = session.generate("x", json_schema=grammar, **options)
        if found.finish_reason == "stop":
            validator = jsonschema.Draft202012Validator(case["schema"])
            assert validator.is_valid(json.loads(found.text)), (case["schema"], found.text)
            n_valid += 1
    assert n_valid > 15


@pytest.mark.parametrize(
    "name",
    ["", "_id", "$filter", "$ref", "@type", "1st", "\u540d", "\U0001f600", 'a"b', "a\\b", "string"],
)
def test_any_property_name_can_be_generated(session: SpecSession, name: str) -> None:
    properties = {name: {"type": "boolean"}, name + "!": {"type": "null"}, "-": {"type": "null"}}
    schema = {"type": "object", "properties": properties, "required": [name]}
    for found in values(session, schema):
        assert isinstance(found[name], bool)
        assert found.keys() <= properties.keys()


# Where JSON forbids what the model prefers, the allowed token that is written first follows.
JSON_PIECES = {
    '{"a": [1, 2.5, -3e7, null, true]}': ['{"', "a", '": [1', ", 2.5, -3e7", ", null", ", true]}"],
    '"text"': ['"te', 'xt"'],
    '{"b": []}': ["{", "oops", '"b": ', "[]}"],
    "false": ["no", "false"],
}


@pytest.mark.parametrize("schema", [True, {}, "{}"])
@pytest.mark.parametrize("text", JSON_PIECES)
def test_schemas_without_keywords_allow_any_json_and_nothing_else(
    scripted: Callable[..., Path], open_session: Open, schema: Any, text: str
) -> None:
    session = open_session(scripted(JSON_PIECES[text]), None)
    assert session.generate([BOS], json_schema=schema).text == text


def test_a_schema_can_be_given_as_text(session: SpecSession) -> None:
    schema = '{"type": "integer", "minimum": 3, "maximum": 7}'
    assert session.generate("x", json_schema=schema).text in ("3", "4", "5", "6", "7")


class Cat(BaseModel):
    name: str
    lives: int


def test_a_pydantic_model_as_schema_reads_the_generated_text(session: SpecSession) -> None:
    found = session.generate("x", json_schema=Cat, max_tokens=300, temperature=1.0, seed=3)
    assert found.finish_reason == "stop"
    Cat.model_validate_json(found.text)


def test_a_regular_expression_constrains_the_text(session: SpecSession) -> None:
    for seed in range(4):
        options: dict[str, Any] = {"temperature": 1.5, "seed": seed, "max_tokens": 50}
        found = session.generate("x", regex=r"(ab|c/d){2,3}\.\d", **options)
        assert found.finish_reason == "stop"
        assert found.text.count("ab") + found.text.count("c/d") in (2, 3)


def test_a_lark_grammar_constrains_the_text(session: SpecSession) -> None:
    grammar = '%llguidance {}\nstart: "say " word+\nword: /[a-c]{2}/ "."'
    found = session.generate("x", grammar=grammar, max_tokens=20, temperature=1.0, seed=1).text
    assert found.startswith("say ")
    assert set(found[4:]) <= set("abc.")


@pytest.mark.parametrize("constant", ["<s>", "</s>", "<|im_start|>", "<unk>", "<fim_prefix>"])
def test_constants_that_look_like_control_tokens_are_generated_as_text(
    open_session: Open, constant: str
) -> None:
    found = open_session().generate("x", json_schema=held({"const": constant}))
    assert json.loads(found.text) == {"a": constant}


def test_a_json_schema_and_a_regex_at_once_are_refused(session: SpecSession) -> None:
    with pytest.raises(ArgumentError, match="one of grammar, json_schema and regex"):
        session.generate("x", json_schema={}, regex="a")
