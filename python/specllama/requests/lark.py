"""Pieces of llguidance's Lark grammars."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_HEAD = "%llguidance {}"
"""What shows that a grammar is llguidance's Lark."""


def lark(rules: Mapping[str, str]) -> str:
    """Return the grammar with these rules by name; `start` is the whole text."""
    return "\n".join([_HEAD, *(f"{name}: {rule}" for name, rule in rules.items())])


def literal(text: str) -> str:
    """Return a text, not empty, as it is written in a rule."""
    return json.dumps(text, ensure_ascii=False)


def json_rule(schema: str) -> str:
    """Return the rule of JSON that follows a schema, given as llguidance reads it."""
    return f"%json {schema}"


def regex_rule(regex: str) -> str:
    """Return the rule of a text that matches a regular expression as a whole."""
    written = re.sub(r"\\.|[/\n]", lambda one: {"/": r"\/", "\n": r"\n"}.get(one[0], one[0]), regex)
    return f"/{written}/"
