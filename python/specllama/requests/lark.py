"""Pieces of llguidance's Lark grammars."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from specllama.errors import ArgumentError

MOST_TOGETHER = 8
"""Expressions that the same text has to match."""

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/|(?://|#)[^\n]*')
"""Literals, expressions and comments in Lark."""

_HEAD = "%llguidance {}"
"""What shows that a grammar is llguidance's Lark."""


def lark(rules: Mapping[str, str]) -> str:
    """Return the grammar with these rules by name; `start` is the whole text."""
    return "\n".join([_HEAD, *(f"{name}: {rule}" for name, rule in rules.items())])


def check_work(grammar: str) -> None:
    """Raise ArgumentError for a grammar that llguidance may take forever to compile: each further
    expression that a text has to match as well may double the time."""
    n_patterns = grammar.count('"pattern"') if '"allOf"' in grammar else 0
    if max(_QUOTED.sub("", grammar).count("&"), n_patterns) > MOST_TOGETHER:
        raise ArgumentError(
            f"The grammar has more than {MOST_TOGETHER} expressions that a text has to match "
            "together; give fewer."
        )


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
