"""Reads the constraint of an answer from the fields of a request."""

from __future__ import annotations

from typing import Any, cast

from specllama.requests.json_text import parsed
from specllama.requests.lark import lark, literal
from specllama.requests.options import GenerateOptions
from specllama.requests.schema.grammar import schema_grammar
from specllama.server.body.fields import Fields
from specllama.server.body.limits import check_schema
from specllama.server.error import ApiError

_NAMES = {
    "grammar": ("grammar", "guided_grammar", "ebnf"),
    "regex": ("regex", "guided_regex"),
    "json_schema": ("json_schema", "guided_json"),
    "choice": ("guided_choice",),
}
"""Fields of llama-server, vLLM and SGLang, by kind of constraint."""

_STRUCTURED = {"grammar": "grammar", "regex": "regex", "json": "json_schema", "choice": "choice"}
"""The same for the fields inside vLLM's structured_outputs."""


def read_constraint(fields: Fields) -> GenerateOptions:
    """Return the option that constrains an answer by a grammar, a schema or a regular expression;
    {} if the request has none. Raises ApiError and ArgumentError."""
    found: dict[str, Any] = {}
    for kind, fields_of in _NAMES.items():
        for name in fields_of:
            if name in fields and fields.any(name) != "":  # "" comes from a form left blank
                found |= _option(kind, fields, name)
    structured = fields.object("structured_outputs")
    for name in structured.given:
        if name not in _STRUCTURED and structured.any(name) not in (False, ""):
            structured.refuse_unsupported(name)
        elif name in _STRUCTURED:
            found |= _option(_STRUCTURED[name], structured, name)
    if "response_format" in fields:
        found |= form_options(fields, "response_format", "json_schema")
    if len(found) > 1:
        message = f"{' and '.join(found)} exclude each other; give one of them."
        raise ApiError(400, message, param=next(iter(found)))
    return cast(GenerateOptions, found)


def form_options(fields: Fields, name: str, inside: str = "") -> GenerateOptions:
    """Return the option for a response format. Its schema is next to its `type`, or in its field
    `inside`. Raises ApiError and ArgumentError."""
    if name not in fields:
        return {}
    wanted = fields.object(name)
    wanted.required("type")
    kind = wanted.text("type")
    if kind == "text":
        return {}
    described = wanted if "schema" in wanted or not inside else wanted.object(inside)
    if kind == "json_object":
        schema = _schema(wanted, "schema") if "schema" in wanted else {"type": "object"}
    elif kind == "json_schema":
        described.required("schema")
        schema = _schema(described, "schema")
    else:
        wanted.refuse("type", '"text", "json_object" or "json_schema"')
    return {"json_schema": schema_grammar(schema, strict=described.flag("strict"))}


def schema_option(fields: Fields, name: str) -> GenerateOptions:
    """Return the option for a field that is a schema, or the text of one. Raises ApiError and
    ArgumentError."""
    return {"json_schema": schema_grammar(_schema(fields, name))}


def _option(kind: str, fields: Fields, name: str) -> dict[str, Any]:
    if kind == "choice":
        texts = fields.any(name)
        if not isinstance(texts, list) or not all(isinstance(one, str) and one for one in texts):
            fields.refuse(name, "a list of non-empty strings")
        return {"grammar": lark({"start": " | ".join(map(literal, texts))})} if texts else {}
    if kind == "json_schema":
        return {**schema_option(fields, name)}
    return {kind: fields.text(name)}


def _schema(fields: Fields, name: str) -> Any:
    """Return a field that is a schema, or the text of one, unchanged with its null values."""
    schema = fields.any(name)
    if isinstance(schema, str):
        try:
            schema = parsed(schema)
        except ValueError:
            fields.refuse(name, "a JSON schema")
    if not isinstance(schema, (dict, bool)):
        fields.refuse(name, "an object")
    check_schema(fields.full_name(name), schema)
    return schema
