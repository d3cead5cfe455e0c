"""The grammar of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.grammar import joined
from specllama.requests.schema import schema_rules
from specllama.server.error import ApiError
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat
from specllama.server.tools.tool import Tool, loosened

# Of the bytes and rules that a grammar may have: what is longer would be refused.
_MOST_BYTES = 60_000
_MOST_RULES = 3500


def calls_grammar(
    choice: ToolChoice, calls: CallFormat, answer: Mapping[str, Any] | None = None
) -> str:
    """Return the GBNF text of one call of the tools that may be called, or of several.

    Where the schemas make it too long, it leaves the arguments of all tools open.

    Args:
        choice: The tools.
        calls: How a model writes calls.
        answer: A JSON schema that a text may follow instead of being calls.

    Raises:
        ApiError: A schema cannot be converted.
    """
    grammar = joined(_rules(choice.tools, choice, calls, answer))
    if len(grammar.encode()) <= _MOST_BYTES and len(re.findall("[=?*+{]", grammar)) <= _MOST_RULES:
        return grammar
    return joined(_rules([loosened(tool) for tool in choice.tools], choice, calls, answer))


def _rules(
    tools: Sequence[Tool], choice: ToolChoice, calls: CallFormat, answer: Mapping[str, Any] | None
) -> dict[str, str]:
    rules: dict[str, str] = {}
    alternatives = []
    for i, tool in enumerate(tools):
        arguments = _add(rules, f"arguments-{i}", tool.parameters, f"parameters of {tool.name}")
        alternatives.append(calls.call_rule(tool.name, arguments))
    rules["call"] = " | ".join(alternatives)
    rules["calls"] = calls.calls_rule(choice.parallel)
    rules["root"] = "calls"
    if answer is not None:
        rules["root"] += " | " + _add(rules, "answer", answer, "response_format")
    return rules


def _add(rules: dict[str, str], prefix: str, schema: Mapping[str, Any], what: str) -> str:
    """Add the rules of a schema; return the name of the whole."""
    try:
        whole, own = schema_rules(schema, prefix)
    except ArgumentError as error:
        raise ApiError(400, f"The {what}: {error}", param=what.split(" ")[0]) from None
    rules |= own
    return whole
