"""Grammars that a generated text must follow."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed

LARK = "%llguidance {}\n"
"""The first line of the Lark grammars that are made here."""

_LARK = re.compile(r"\s*(%llguidance|start\s*:(?!:))")


def grammar_text(
    grammar: str | None, json_schema: Any = None, regex: str | None = None
) -> str:
    """Return the grammar that a request asks for; "" if it asks for none.

    Args:
        grammar: GBNF, whose rule `root` is the whole text (llama.cpp's grammars/README.md), or
            llguidance's Lark.
        json_schema: A JSON schema as a dict or as text ({} or True: any JSON value), or a type,
            such as a pydantic model, a dataclass or a TypedDict.
        regex: A regular expression that the whole text must match, in Rust's syntax.

    Raises:
        ArgumentError: Several are given, or the schema is not valid or cannot be enforced.
    """
    given = {"grammar": grammar, "json_schema": json_schema, "regex": regex}
    names = [name for name, one in given.items() if one is not None]
    if len(names) > 1:
        raise ArgumentError(f"Give {' or '.join(names)}, not both.")
    if grammar is not None:
        return _check.text("grammar", grammar) or " "  # "" would ask for no grammar
    if regex is not None:
        return regex_grammar(_check.text("regex", regex))
    return "" if json_schema is None else _from_schema(json_schema)


def syntax_of(grammar: str) -> str:
    """Return the syntax of a grammar: "gbnf", "lark", or "json_schema" of a prepared one."""
    if grammar.startswith("{"):
        return "json_schema"
    return "lark" if _LARK.match(grammar) else "gbnf"


def regex_grammar(regex: str) -> str:
    """Return the Lark grammar of a text that matches a regular expression as a whole."""
    written = re.sub(r"\\.|/|\n", lambda found: _IN_SLASHES.get(found[0], found[0]), regex)
    return f"{LARK}start: /{written}/"


_IN_SLASHES = {"/": r"\/", "\n": r"\n"}


def _from_schema(schema: Any) -> str:
    # Imported only here: these load llguidance.
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
    found = schema_grammar(schema, strict=True)
    for remark in found.remarks:
        warnings.warn(f"json_schema: {remark}.", stacklevel=2)
    return found.text
