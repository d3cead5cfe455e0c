"""Grammars of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from specllama._core import is_sound_grammar
from specllama.errors import ArgumentError
from specllama.requests.grammar import joined
from specllama.requests.schema.literal import literal
from specllama.requests.schema.rules import schema_rules
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat
from specllama.server.tools.tool import Tool, loosened, unmeasured

# Most bytes of a grammar, a little below the bound at which it would be refused.
_MOST_BYTES = 60_000
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

    A tool whose schema makes a grammar that llama.cpp could not follow goes without bounds of
    lengths; if that is not enough, or if the schema cannot be converted, it may have any arguments.
    If all schemas together make such a grammar, or one that is too long, the same is done to every
    tool.

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
        if len(grammar.encode()) <= _MOST_BYTES and is_sound_grammar(grammar):
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
    with suppress(ArgumentError):
        for one in (tool, unmeasured(tool)):
            whole, rules = schema_rules(one.parameters, name, _MOST_PARTS)
            if is_sound_grammar(joined(rules)):
                return whole, rules
    return schema_rules(loosened(tool).parameters, name)
