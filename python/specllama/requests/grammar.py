"""Grammars: what a text must follow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama.errors import ArgumentError

_MOST_REPEATED = 65536
"""More of anything makes no grammar that can be read: it has more bytes."""

_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems")
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""What in a schema is no schema."""


def gbnf(grammar: str | None, json_schema: str | Mapping[str, Any] | bool | None) -> str:
    """Return the GBNF text that a request asks for, "" for none.

    Args:
        grammar: GBNF text, see llama.cpp's grammars/README.md; its rule `root` is the text.
        json_schema: A JSON schema as a dict or as text; {} or True: any JSON value.

    Raises:
        ArgumentError: Both are given, or the schema is none or cannot be converted.
    """
    if grammar is not None and json_schema is not None:
        raise ArgumentError("Give grammar or json_schema, not both.")
    if grammar is not None:
        return _check.text("grammar", grammar) or " "  # which has no rules, either
    return "" if json_schema is None else _from_schema(json_schema)


def _from_schema(schema: Any) -> str:
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except RecursionError:
            raise ArgumentError("json_schema nests too deep to be converted.") from None
        except ValueError as error:
            raise ArgumentError(f"json_schema is not valid JSON: {error}.") from None
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise ArgumentError(f"json_schema must be a JSON object, not {schema!r:.80}.")
    return "\n".join(f"{name} ::= {rule}" for name, rule in schema_rules(schema).items())


def schema_rules(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the GBNF rules of a JSON schema by their names; `root` is the whole.

    Raises:
        ArgumentError: It cannot be converted.
    """
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        written = json.dumps(schema)
        _check_bounds(json.loads(written))
        text = str(json_schema_to_gbnf(written))
    except ArgumentError:
        raise
    except RecursionError:
        raise ArgumentError("json_schema nests too deep to be converted.") from None
    except Exception as error:  # the converter raises all kinds, and bare assertions
        what = str(error) or type(error).__name__
        raise ArgumentError(f"json_schema cannot be converted: {what:.200}.") from None
    _, *parts = re.split(r"^([a-zA-Z0-9-]+) ::= ", text, flags=re.MULTILINE)
    rules = {name: rule.rstrip("\n") for name, rule in zip(parts[::2], parts[1::2], strict=True)}
    if "char" in rules:
        # The converter's lets strings hold line breaks, which JSON does not.
        rules["char"] = rules["char"].replace(r'[^"\\]', r'[^"\\\x00-\x1F]', 1)
    return rules


def _check_bounds(schema: Any) -> None:
    """Raise ArgumentError for bounds by which the converter would fill the memory: it writes as
    many copies of a rule."""
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        if not isinstance(part, dict):
            continue
        parts += [value for name, value in part.items() if name not in _VALUES]
        bounds = [(name, part.get(name)) for name in _BOUNDS]
        if isinstance(pattern := part.get("pattern"), str):
            repeated = re.findall(r"\{[\d, ]*\}", pattern)
            numbers = [number for one in repeated for number in re.findall(r"\d+", one)]
            # Of a longer number the first digits are too large, too.
            bounds += [("pattern", int(number[:9])) for number in numbers]
        for name, bound in bounds:
            if isinstance(bound, int) and bound > _MOST_REPEATED:
                raise ArgumentError(
                    f"json_schema cannot be converted: its {name} asks for more than "
                    f"{_MOST_REPEATED} repetitions."
                )
