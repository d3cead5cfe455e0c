"""Grammars of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from specllama.requests.lark import json_rule, lark, literal
from specllama.requests.schema.schema_grammar import SchemaGrammar
from specllama.server.tools.choice import ToolChoice
from specllama.server.tools.format import CallFormat

_BLANKS = "(/[ \\n]{1,4}/)?"


@dataclass(frozen=True)
class AnswerGrammar:
    """Writes the grammars of answers by one model.

    Attributes:
        closing: A text that comes before the answer, with blanks after it; "": none does.
        control: Texts that are control tokens of the model, with these tokens. A grammar's text
            never stands for such a token, which may come instead of its text.
    """

    closing: str = ""
    control: Mapping[str, int] = field(default_factory=dict)

    def calls(
        self, choice: ToolChoice, calls: CallFormat, answer: SchemaGrammar | None = None
    ) -> str:
        """Return the Lark grammar of one call, or several calls, of the tools that may be called.

        Args:
            choice: The tools.
            calls: How the model writes calls.
            answer: The schema that the answer may follow instead of making calls; None: calls only.
        """
        rules = {
            "start": "calls" if answer is None else "calls | answer",
            "calls": calls.calls_rule(choice.parallel, self._text),
            "call": " | ".join(
                calls.call_rule(tool.name, f"arguments_{i}", self._text)
                for i, tool in enumerate(choice.tools)
            ),
        }
        for i, tool in enumerate(choice.tools):
            rules[f"arguments_{i}"] = json_rule(tool.arguments.text)
        if answer is not None:
            rules["answer"] = json_rule(answer.text)
        return self._after_closing(rules)

    def answer(self, answer: SchemaGrammar) -> str:
        """Return the Lark grammar of an answer that follows a schema."""
        return self._after_closing({"start": json_rule(answer.text)})

    def _after_closing(self, rules: dict[str, str]) -> str:
        if self.closing:
            start = rules.pop("start")
            rules = {
                "start": f"{self._text(self.closing)} {_BLANKS} whole",
                "whole": start,
                **rules,
            }
        return lark(rules)

    def _text(self, text: str) -> str:
        """Return a text as it is written in a rule; control tokens may come in it."""
        if not self.control:
            return literal(text)
        parts = re.split("(" + "|".join(map(re.escape, self.control)) + ")", text)
        return " ".join(self._part(part) for part in parts if part)

    def _part(self, text: str) -> str:
        written, token = literal(text), self.control.get(text)
        return written if token is None else f"({written} | <[{token}]>)"
