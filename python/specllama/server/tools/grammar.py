"""The grammar of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.grammar import joined
from specllama.requests.schema.rules import schema_rules
from specllama.server.error import ApiError
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat, literal
from specllama.server.tools.tool import Tool, loosened, unmeasured

# Of the bytes and rules that a grammar may have: what is longer would be refused.
_MOST_BYTES = 60_000
_MOST_RULES = 3500


def calls_grammar(
    choice: ToolChoice,
    calls: CallFormat,
    answer: Mapping[str, Any] | None = None,
    closing: str = "",
) -> str:
    """Return the GBNF text of one call of the tools that may be called, or of several.

    Where the schemas make it too long, it leaves lengths open, or all arguments of all tools.

    Args:
        choice: The tools.
        calls: How a model writes calls.
        answer: A JSON schema that a text may follow instead of being calls.
        closing: What stands before, and blanks.

    Raises:
        ApiError: A tool's schema cannot be converted.
        ArgumentError: The answer's cannot.
    """
    for simpler in (lambda tool: tool, unmeasured):
        rules = _rules([simpler(tool) for tool in choice.tools], choice, calls, answer)
        grammar = joined(_behind(closing, rules))
        if len(grammar.encode()) <= _MOST_BYTES and _n_rules(grammar) <= _MOST_RULES:
            return grammar
    rules = _rules([loosened(tool) for tool in choice.tools], choice, calls, answer)
    return joined(_behind(closing, rules))


def answer_grammar(answer: Mapping[str, Any], closing: str) -> str:
    """Return the GBNF text of an answer that follows a JSON schema, behind `closing` and blanks.
    Raises ArgumentError if the schema cannot be converted."""
    whole, rules = schema_rules(answer, "answer")
    return joined(_behind(closing, rules | {"root": whole}))


def _behind(closing: str, rules: Mapping[str, str]) -> Mapping[str, str]:
    if not closing:
        return rules
    return {**rules, "root": f"{literal(closing)} [ \\n]{{0,4}} ({rules['root']})"}


def _rules(
    tools: Sequence[Tool], choice: ToolChoice, calls: CallFormat, answer: Mapping[str, Any] | None
) -> dict[str, str]:
    rules: dict[str, str] = {}
    alternatives = []
    for i, tool in enumerate(tools):
        try:
            arguments, own = schema_rules(tool.parameters, f"arguments-{i}")
        except ArgumentError as error:
            message = f"The parameters of {tool.name} in tools: {error}"
            raise ApiError(400, message, param="tools") from None
        rules |= own
        alternatives.append(calls.call_rule(tool.name, arguments))
    rules["call"] = " | ".join(alternatives)
    rules["calls"] = calls.calls_rule(choice.parallel)
    rules["root"] = "calls"
    if answer is not None:
        whole, own = schema_rules(answer, "answer")
        rules |= own
        rules["root"] += f" | {whole}"
    return rules


def _n_rules(grammar: str) -> int:
    """As llama.cpp makes them, or more: one of each repetition that may be there or not."""
    bounds = re.findall(r"\{(\d+)(?:,(\d*))?\}", grammar)
    n_repeated = sum(int(high or low) for low, high in bounds)
    return len(re.findall("[=?*+]", grammar)) + n_repeated
