"""Pieces of llguidance's Lark grammars."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from specllama.errors import ArgumentError

MOST_TOGETHER = 8
"""Most expressions that the same text must match."""

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/|(?://|#)[^\n]*')
"""Literals, expressions and comments in Lark."""

_HEAD = "%llguidance {}"
"""Marks a grammar as llguidance's Lark."""


def lark(rules: Mapping[str, str]) -> str:
    """Return the grammar of rules by name; rule `start` is the whole text."""
    return "\n".join([_HEAD, *(f"{name}: {rule}" for name, rule in rules.items())])


def check_work(grammar: str) -> None:
    """Raise ArgumentError for a grammar that llguidance might take forever to compile: each
    additional expression that the same text must match may double the time."""
    n_patterns = grammar.count('"pattern"') if '"allOf"' in grammar else 0
    if max(_QUOTED.sub("", grammar).count("&"), n_patterns) > MOST_TOGETHER:
        raise ArgumentError(
            f"The grammar has more than {MOST_TOGETHER} expressions that the same text must match; "
            "give fewer."
        )


def literal(text: str) -> str:
    """Return a text, which is not empty, as a literal of a rule."""
    return json.dumps(text, ensure_ascii=False)


def json_rule(schema: str) -> str:
    """Return the rule for JSON that follows a schema, given as llguidance reads it."""
    return f"%json {schema}"


def regex_rule(regex: str) -> str:
    """Return the rule for a text that matches a regular expression as a whole."""
    written = re.sub(r"\\.|[/\n]", lambda one: {"/": r"\/", "\n": r"\n"}.get(one[0], one[0]), regex)
    return f"/{written}/"
