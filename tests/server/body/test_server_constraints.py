"""Constraints of answers from the fields of several APIs, and their warnings."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest
from serving import Server

PATHS = {
    "/v1/completions": {"prompt": "x", "max_tokens": 300},
    "/completion": {"prompt": "x", "n_predict": 300},
}
SCHEMA = {"type": "object", "properties": {"b": {"enum": [1, 2]}}, "required": ["b"]}
ODD = {"type": "array", "items": {"const": 1}, "maxItems": 3, "uniqueItems": True}
GBNF = 'root ::= "a"{3}'


def text(server: Server, path: str, **fields: Any) -> str:
    answer = server.post(path, {**PATHS[path], "temperature": 0, **fields})
    assert answer.is_success, answer.text
    body = answer.json()
    return str(body["content"] if path == "/completion" else body["choices"][0]["text"])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"regex": "[a-c]{3}/x"}, "[a-c]{3}/x"),
        ({"guided_regex": "[a-c]{3}/x"}, "[a-c]{3}/x"),
        ({"structured_outputs": {"regex": "[a-c]{3}/x"}}, "[a-c]{3}/x"),
        ({"guided_choice": ["yes", "no"]}, "yes|no"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "yes|no"),
        ({"grammar": GBNF}, "aaa"),
        ({"guided_grammar": GBNF}, "aaa"),
        ({"ebnf": GBNF}, "aaa"),
        ({"structured_outputs": {"grammar": GBNF}}, "aaa"),
        ({"grammar": '%llguidance {}\nstart: "a" /[bc]/'}, "a[bc]"),
        ({"json_schema": SCHEMA}, r'\{\s*"b":\s*[12]\s*\}'),
        ({"guided_json": SCHEMA}, r'\{\s*"b":\s*[12]\s*\}'),
        ({"guided_json": json.dumps(SCHEMA)}, r'\{\s*"b":\s*[12]\s*\}'),
        ({"structured_outputs": {"json": SCHEMA}}, r'\{\s*"b":\s*[12]\s*\}'),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, r'\{\s*"b":\s*[12]\s*\}'),
        ({"regex": "", "grammar": "", "guided_json": None, "structured_outputs": {}}, r"[\s\S]*"),
    ],
)
def test_constraint_fields_of_other_servers_are_enforced(
    server: Server, path: str, fields: dict[str, Any], pattern: str
) -> None:
    assert re.fullmatch(pattern, text(server, path, **fields))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"schema": SCHEMA}}, "response_format.type"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        (
            {"response_format": {"type": "json_object", "schema": {"type": "odd"}}},
            "response_format",
        ),
        ({"guided_json": {"type": "odd"}}, "guided_json"),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_regex": "("}, "guided_regex"),
        ({"guided_regex": 5}, "guided_regex"),
        ({"regex": "(?=a)"}, "regex"),
        ({"guided_choice": "yes"}, "guided_choice"),
        ({"guided_choice": [1]}, "guided_choice"),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"regex": "a", "grammar": GBNF}, "grammar"),
    ],
)
def test_refusals_of_constraints_name_the_field(
    server: Server, fields: dict[str, Any], param: str
) -> None:
    answer = server.post("/v1/completions", {"prompt": "x", "max_tokens": 5, **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def wanted(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **more}}


def test_a_strict_schema_is_refused_if_a_part_cannot_be_enforced(server: Server) -> None:
    body = {"prompt": "x", "max_tokens": 5, "response_format": wanted(ODD, strict=True)}
    answer = server.post("/v1/completions", body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == "response_format"
    assert '"uniqueItems", which cannot be enforced' in error["message"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_warnings_name_keywords_that_are_not_enforced(
    server: Server, path: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    form = {"type": "string", "format": f"form{len(path)}{stream}"}
    warning = f"json_schema: the format '{form['format']}' is not checked."
    body = {
        **PATHS[path],
        "stream": stream,
        "stream_options": {"include_usage": True},
        "response_format": wanted(form),
    }
    with caplog.at_level(logging.WARNING, "specllama.server"):
        answers = [server.post(path, body).text for _ in range(2)]
    for answer in answers:
        assert json.dumps([warning], separators=(",", ":")) in answer
    assert [one.getMessage() for one in caplog.records].count(warning) == 1
    without = server.post(path, {**body, "response_format": wanted(SCHEMA)}).text
    assert '"warnings"' not in without
