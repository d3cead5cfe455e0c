"""Grammars of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from specllama.errors import ArgumentError
from specllama.requests.grammar import joined
from specllama.requests.schema.literal import literal
from specllama.requests.schema.rules import schema_rules
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat
from specllama.server.tools.tool import Tool, loosened, unmeasured

# Most bytes and rules of a grammar, a little below the bounds at which it would be refused.
_MOST_BYTES = 60_000
_MOST_RULES = 3500
# Most schemas within a tool's schema. The rules of more would have too many bytes, and requests may
# have many tools.
_MOST_PARTS = 2000


def calls_grammar(
    choice: ToolChoice,
    calls: CallFormat,
    answer: Mapping[str, Any] | None = None,
    closing: str = "",
) -> str:
    """Return the GBNF text of one call, or several calls, of the tools that may be called.

    A tool whose schema cannot be converted may have any arguments. If the schemas make the grammar
    too long, it leaves out bounds of lengths; if it is still too long, it allows any arguments for
    every tool.

    Args:
        choice: The tools.
        calls: How the model writes calls.
        answer: A JSON schema that the answer may follow instead of making calls; None: calls only.
        closing: A text, followed by blanks, that comes before all this; "": nothing comes before.

    Raises:
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
        arguments, own = _arguments(tool, f"arguments-{i}")
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


def _arguments(tool: Tool, name: str) -> tuple[str, dict[str, str]]:
    try:
        return schema_rules(tool.parameters, name, _MOST_PARTS)
    except ArgumentError:
        return schema_rules(loosened(tool).parameters, name)


def _n_rules(grammar: str) -> int:
    """Return an upper bound of llama.cpp's rules: it makes one of each optional repetition."""
    bounds = re.findall(r"\{(\d+)(?:,(\d*))?\}", grammar)
    n_repeated = sum(int(high or low) for low, high in bounds)
    return len(re.findall("[=?*+]", grammar)) + n_repeated
