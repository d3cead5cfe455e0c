"""Grammars that a generated text must follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError
from specllama.requests.json_text import parsed


def gbnf(grammar: str | None, json_schema: str | Mapping[str, Any] | bool | None) -> str:
    """Return the GBNF text that a request asks for; "" if it asks for none.

    Args:
        grammar: GBNF text, see llama.cpp's grammars/README.md; its rule `root` is the whole text.
        json_schema: A JSON schema as a dict or as text; {} or True: any JSON value.

    Raises:
        ArgumentError: Both are given, or the schema is not valid or cannot be converted.
    """
    if grammar is not None and json_schema is not None:
        raise ArgumentError("Give grammar or json_schema, not both.")
    if grammar is not None:
        return _check.text("grammar", grammar) or " "  # "" would ask for no grammar
    return "" if json_schema is None else _from_schema(json_schema)


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
    # Imported only here, because the converter's package loads all of llama-cpp-python.
    from specllama.requests.schema.rules import schema_rules

    whole, rules = schema_rules(schema, "json")
    return joined(rules | {"root": whole})


def joined(rules: Mapping[str, str]) -> str:
    """Return the GBNF text of rules, given by their names."""
    return "\n".join(f"{name} ::= {rule}" for name, rule in rules.items())
