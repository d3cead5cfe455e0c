"""Grammars that a generated text must follow."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama._core import GrammarSyntax
from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed
from specllama.requests.lark import check_work
from specllama.requests.schema.schema_grammar import SchemaGrammar

_LONGEST_GBNF = 65536
"""Bytes, as in llama.cpp."""

_LARK = re.compile(r"\s*(%llguidance|start\s*:(?!:))")


def constraint(
    grammar: str | None, json_schema: Any, regex: str | None
) -> tuple[str, GrammarSyntax]:
    """Return the grammar of a request, and its syntax; "": no grammar.

    Args:
        grammar: GBNF, whose rule `root` is the whole text; llguidance's Lark, whose rule `start` is
            the whole text; or the text of a SchemaGrammar.
        json_schema: A JSON schema as a dict or a text ({} or True: any JSON value); a type, such as
            a pydantic model, a dataclass or a TypedDict; or a SchemaGrammar.
        regex: A regular expression for the whole text.

    Raises:
        ArgumentError: Several are given, or the schema is not valid or cannot be enforced.
    """
    if sum(one is not None for one in (grammar, json_schema, regex)) > 1:
        raise ArgumentError("Give one of grammar, json_schema and regex, not several.")
    if regex is not None:
        return _check.text("regex", regex) or "()", GrammarSyntax.regex
    if json_schema is not None:
        found = read_schema(json_schema)
        for remark in found.remarks if found is not json_schema else ():
            warnings.warn(f"json_schema: {remark}.", stacklevel=2)
        return found.text, GrammarSyntax.json_schema
    if grammar is None:
        return "", GrammarSyntax.gbnf
    text = _check.text("grammar", grammar)
    if text.startswith("{"):
        return text, GrammarSyntax.json_schema
    if not _LARK.match(text):
        return _from_gbnf(text), GrammarSyntax.lark
    check_work(text)
    return text, GrammarSyntax.lark


def _from_gbnf(text: str) -> str:
    if len(text.encode()) > _LONGEST_GBNF:
        raise ArgumentError(
            f"The grammar has {len(text.encode())} bytes; at most {_LONGEST_GBNF} are allowed."
        )
    from specllama.requests.gbnf.lark import gbnf_as_lark

    return gbnf_as_lark(text)


def read_schema(schema: Any) -> SchemaGrammar:
    """Return the grammar of a schema, given as to `constraint`. Raises ArgumentError if the schema
    is not valid or cannot be enforced completely."""
    if isinstance(schema, SchemaGrammar):
        return schema
    # Imported only here: these load llguidance's Python module.
    from specllama.requests.schema.grammar import schema_grammar
    from specllama.requests.schema.own import is_type, own_schema

    if is_type(schema):
        schema = own_schema(schema)
    if isinstance(schema, str):
        try:
            schema = parsed(schema)
        except ValueError as error:
            raise ArgumentError(f"json_schema is not valid JSON: {error}.") from None
    if schema is not True and not isinstance(schema, Mapping):
        raise ArgumentError(f"json_schema must be a JSON object, not {_check.quoted(schema)}.")
    return schema_grammar(schema, strict=True)
