"""Grammars of calls."""

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

# Most bytes and rules of a grammar, a little below the bounds at which it would be refused.
_MOST_BYTES = 60_000
_MOST_RULES = 3500


def calls_grammar(
    choice: ToolChoice,
    calls: CallFormat,
    answer: Mapping[str, Any] | None = None,
    closing: str = "",
) -> str:
    """Return the GBNF text of one call, or several calls, of the tools that may be called.

    If the schemas make the grammar too long, it leaves out bounds of lengths; if it is still too
    long, it allows any arguments for every tool.

    Args:
        choice: The tools.
        calls: How the model writes calls.
        answer: A JSON schema that the answer may follow instead of making calls; None: calls only.
        closing: A text, followed by blanks, that comes before all this; "": nothing comes before.

    Raises:
        ApiError: A tool's schema cannot be converted.
        ArgumentError: The answer's schema cannot be converted.
    """
    for simpler in (lambda tool: tool, unmeasured):
        rules = _rules([simpler(tool) for tool in choice.tools], choice, calls, answer)
        grammar = joined(_behind(closing, rules))
        if len(grammar.encode()) <= _MOST_BYTES and _n_rules(grammar) <= _MOST_RULES:
            return grammar
    rules = _rules([loosened(tool) for tool in choice.tools], choice, calls, answer)
    return joined(_behind(closing, rules))


def answer_grammar(answer: Mapping[str, Any], closing: str) -> str:
    """Return the GBNF text of an answer that follows a JSON schema, after `closing` and blanks.
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
    """Return an upper bound of llama.cpp's rules: it makes one of each optional repetition."""
    bounds = re.findall(r"\{(\d+)(?:,(\d*))?\}", grammar)
    n_repeated = sum(int(high or low) for low, high in bounds)
    return len(re.findall("[=?*+]", grammar)) + n_repeated
