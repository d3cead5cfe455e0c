"""Grammars that a generated text must follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama._core import GrammarSyntax
from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed


def constraint(
    grammar: str | None, json_schema: str | Mapping[str, Any] | bool | None, regex: str | None
) -> tuple[str, GrammarSyntax]:
    """Return the grammar that a request asks for, and its syntax; "": it asks for none.

    Args:
        grammar: GBNF text, whose rule `root` is the whole text; or, if it begins with
            "%llguidance", llguidance's Lark.
        json_schema: A JSON schema as a dict or as text; {} or True: any JSON value.
        regex: A regular expression of the whole text.

    Raises:
        ArgumentError: Several are given, or the schema is not valid or cannot be converted.
    """
    if sum(one is not None for one in (grammar, json_schema, regex)) > 1:
        raise ArgumentError("Give one of grammar, json_schema and regex, not several.")
    if regex is not None:
        return _check.text("regex", regex) or " ", GrammarSyntax.regex
    if grammar is not None:
        text = _check.text("grammar", grammar)
        return text or " ", GrammarSyntax.lark if text.lstrip().startswith("%llguidance") else GrammarSyntax.gbnf
    return ("", GrammarSyntax.gbnf) if json_schema is None else (_from_schema(json_schema), GrammarSyntax.json_schema)


def _from_schema(schema: Any) -> str:
    if isinstance(schema, str):
        try:
            schema = parsed(schema)
        except ValueError as error:
            raise ArgumentError(f"json_schema is not valid JSON: {error}.") from None
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise ArgumentError(f"json_schema must be a JSON object, not {_check.quoted(schema)}.")
    return json.dumps(schema)
