"""Grammars of calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from specllama.dialogue.tools.choice import ToolChoice
from specllama.dialogue.tools.format import CallFormat
from specllama.dialogue.tools.parameters_grammar import MarkWriter, ParametersGrammar
from specllama.dialogue.tools.shape import Shape
from specllama.dialogue.tools.tool import Tool
from specllama.model.marks import ID, INDEX, NAME
from specllama.requests.lark import json_rule, lark
from specllama.requests.schema.schema_grammar import SchemaGrammar

_BLANKS = "(/[ \\n]{1,4}/)?"
_INDEX, _ID, _SHORT_ID = "/[0-9]{1,9}/", "/[a-zA-Z0-9_-]{1,64}/", "/[a-zA-Z0-9]{9}/"


@dataclass(frozen=True)
class AnswerGrammar:
    """Writes the grammars for answers of a model.

    Attributes:
        closing: A text before the answer, with blanks after it; "": none.
        control: Texts of the model's control tokens, with these tokens. A text in a grammar does
            not match such a token, so the grammar allows both the token and its text.
        header: An optional text before calls, after the closing; "": none.
    """

    closing: str = ""
    control: Mapping[str, int] = field(default_factory=dict)
    header: str = ""

    def calls(
        self, choice: ToolChoice, calls: CallFormat, answer: SchemaGrammar | None = None
    ) -> str:
        """Return the Lark grammar of one or several calls.

        Args:
            choice: The tools.
            calls: The format of calls.
            answer: A schema for an answer instead of calls; None: only calls.
        """
        names = [f"calls_{i}" for i in range(len(calls.shapes))]
        rules = {"start": " | ".join([*names, *(["answer"] if answer is not None else [])])}
        for i, shape in enumerate(calls.shapes):
            rules |= self._shape(i, shape, choice, calls)
        if answer is not None:
            rules["answer"] = json_rule(answer.text)
        return self._after_closing(rules)

    def answer(self, answer: SchemaGrammar) -> str:
        """Return the Lark grammar of an answer that follows a schema."""
        return self._after_closing({"start": json_rule(answer.text)})

    def _after_closing(self, rules: dict[str, str]) -> str:
        if self.closing:
            header = f"({self._marks(self.header)})?" if self.header else ""
            start = rules.pop("start")
            rules = {
                "start": f"{self._marks(self.closing)} {_BLANKS} {header} whole",
                "whole": start,
                **rules,
            }
        return lark(rules)

    def _shape(self, i: int, shape: Shape, choice: ToolChoice, calls: CallFormat) -> dict[str, str]:
        """Return the rules for all calls of a shape. The first is `calls_` with the shape's
        number."""
        write = self._marks
        several = (
            f"({write(shape.separator)} call_{i})*" if choice.parallel and calls.parallel else ""
        )
        closing = self._end(shape.closing)
        rules = {f"calls_{i}": f"{write(shape.opening)} call_{i} {several} {closing}"}
        short = calls.manner.short_ids
        parameters = None
        if shape.parameters is not None:
            parameters = ParametersGrammar(shape.parameters, write, f"of_{i}_", choice.tools)
        heads = []
        for n, tool in enumerate(choice.tools):
            name = f"arguments_{n}" if parameters is None else f"p{i}_{n}"
            if parameters is not None:
                rules |= parameters.rules(name, tool)
            else:
                rules[name] = json_rule(_schema(tool, shape))
            head, tail = (self._slots(one, tool, short) for one in (shape.head, shape.tail))
            if not several and shape.tail in self.control:
                tail = self._end(shape.tail)
            heads.append(f"{head} {name} {tail}")
        rules[f"call_{i}"] = " | ".join(heads)
        return rules | (parameters.shared if parameters is not None else {})

    def _end(self, mark: str) -> str:
        """Return the rule of a text at the end of all calls. A control token is optional, because
        it may end the model's text and not be written; white space is optional, too."""
        written = self._marks(mark)
        return f"({written})?" if mark in self.control or mark.isspace() else written

    def _slots(self, mark: str, tool: Tool, short: bool) -> str:
        """Return the rule of a text with filled slots."""
        parts = re.split(f"([{INDEX}{ID}])", mark.replace(NAME, tool.name))
        slots = {INDEX: _INDEX, ID: _SHORT_ID if short else _ID}
        # An answer that follows a schema may begin like a call, but only with the same lexemes.
        begin = ['"{"'] if mark.startswith("{") else []
        parts[0] = parts[0].removeprefix("{") if begin else parts[0]
        return " ".join([*begin, *(slots.get(one) or self._marks(one) for one in parts if one)])

    @property
    def _marks(self) -> MarkWriter:
        return MarkWriter(self.control)


def _schema(tool: Tool, shape: Shape) -> str:
    """Return the schema for arguments in JSON, as llguidance reads it."""
    if not shape.spread:
        return tool.arguments.text
    schema = json.loads(tool.arguments.text)
    schema["x-guidance"] = {**schema.get("x-guidance", {}), "whitespace_pattern": "[ \\n]{0,64}"}
    return json.dumps(schema, ensure_ascii=False)
