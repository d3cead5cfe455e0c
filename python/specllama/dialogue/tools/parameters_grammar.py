"""Grammars for arguments with marks around names and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specllama.dialogue.tools.shape import KINDS, Parameters
from specllama.dialogue.tools.tool import Tool
from specllama.dialogue.tools.values import kinds_of
from specllama.errors import ArgumentError
from specllama.model.marks import KEY
from specllama.requests.lark import json_rule, literal, regex_rule
from specllama.requests.schema.grammar import schema_grammar

_MOST = 1000
"""Most parameters of all tools together. Further tools accept any parameters."""

_KEY = "/[a-zA-Z0-9_.-]{1,128}/"
_BLANKS = "(/[ \\n]{1,2}/)?"
_OF_TEXTS = ("pattern", "format", "minLength", "maxLength")
_QUOTES, _STRING = "'\"", '{"type": "string"}'
_LITERALS = {"boolean": '("true" | "false" | "True" | "False")', "null": '("null" | "None")'}


def too_many(tools: Sequence[Tool]) -> frozenset[str]:
    """Return the names of the tools that accept any parameters, because all tools together have too
    many."""
    found, n = set(), 0
    for tool in tools:
        n += len(tool.properties)
        if n > _MOST:
            found.add(tool.name)
    return frozenset(found)


def left_open(tool: Tool, loose: frozenset[str]) -> list[str]:
    """Return the restrictions of a tool's parameters that are not enforced, as clauses.

    Args:
        tool: The tool.
        loose: The result of `too_many`.
    """
    if tool.name in loose:
        return [f"all tools together have more than {_MOST} parameters, so any are accepted"]
    return [
        f'"{keyword}" of {key} is not enforced, because texts are written without quotation marks'
        for key, schema in tool.properties.items()
        if isinstance(schema, Mapping) and "string" in kinds_of(schema)
        for keyword in _OF_TEXTS
        if keyword in schema
    ]


class MarkWriter:
    """Writes fixed texts as rules of a grammar.

    Args:
        control: Texts of the model's control tokens, with these tokens. The rules allow both.
    """

    def __init__(self, control: Mapping[str, int]) -> None:
        self.control = control

    def __call__(self, text: str) -> str:
        """Return a text as part of a rule; "" for ""."""
        if not self.control:
            return literal(text) if text else ""
        parts = re.split(
            "(" + "|".join(map(re.escape, sorted(self.control, key=len, reverse=True))) + ")", text
        )
        return " ".join(self._part(part) for part in parts if part)

    def _part(self, text: str) -> str:
        written, token = literal(text), self.control.get(text)
        return written if token is None else f"({written} | <[{token}]>)"


class ParametersGrammar:
    """Writes rules of parameters.

    Args:
        parameters: The form of parameters.
        write: Writes texts.
        prefix: The beginning of the names of shared rules.
        tools: All tools.

    Attributes:
        shared: Rules shared by several tools.
    """

    def __init__(
        self, parameters: Parameters, write: MarkWriter, prefix: str, tools: Sequence[Tool]
    ) -> None:
        self._parameters = parameters
        self._write = write
        self._prefix = prefix
        self._names: dict[tuple[str, str], str] = {}
        self._loose = too_many(tools)
        self.shared: dict[str, str] = {}

    def rules(self, name: str, tool: Tool) -> dict[str, str]:
        """Return the rules for the arguments of a tool; the first has the given name."""
        properties = tool.properties
        if not properties and ("properties" in tool.schema or not tool.schema):
            return {name: _BLANKS}
        if not properties or tool.name in self._loose:
            return {name: self._any()}
        required = tool.schema.get("required")
        required = required if isinstance(required, list) else []
        rules: dict[str, str] = {}
        ones = []
        for i, (key, schema) in enumerate(properties.items()):
            rules[f"{name}_{i}"] = self._parameter(key, schema, tool)
            ones.append((f"{name}_{i}", key in required))
        return self._sequence(name, ones) | rules

    def _sequence(self, name: str, ones: list[tuple[str, bool]]) -> dict[str, str]:
        """Return the rules for parameters in order. ones: rule names, and whether each is
        required."""
        separator = self._write(self._parameters.separator)
        if not separator:
            return {name: " ".join(one if needed else f"{one}?" for one, needed in ones)}
        rules = {}
        for i, (one, needed) in enumerate(ones):
            for begun in (False, True):
                rest = f"{name}b{i + 1}" if i + 1 < len(ones) else ""
                skipped = f"{name}{'ab'[begun]}{i + 1}" if i + 1 < len(ones) else '""'
                taken = f"{separator if begun else ''} {one} {rest}"
                rules[f"{name}{'ab'[begun]}{i}"] = taken if needed else f"{taken} | {skipped}"
        return {name: f"{name}a0"} | rules

    def _parameter(self, key: str, schema: Any, tool: Tool) -> str:
        begin = self._write(self._parameters.begin + key)
        return f"{begin} ({' | '.join(self._values(key, schema, tool))})"

    def _values(self, key: str, schema: Any, tool: Tool) -> Iterable[str]:
        """Yield the alternatives after a parameter's name."""
        kinds = kinds_of(schema)
        around = self._parameters.around
        if "string" in kinds:
            opening, ending = around("string")
            yield f"{self._write(opening)} {self._text(schema, ending.replace(KEY, key))}"
            if self._parameters.verbatim is not None:
                opening, ending = self._parameters.verbatim
                yield f"{self._write(opening)} {self._text(schema, ending)}"
            if not ending.strip(_QUOTES):
                yield f"{self._write(around('object')[0])} {json_rule(_STRING)}"
            kinds = frozenset(one for one in kinds if around(one) != around("string"))
        for marks in dict.fromkeys(around(one) for one in KINDS if one in kinds):
            same = [one for one in KINDS if one in kinds and around(one) == marks]
            opening, ending = (self._write(one.replace(KEY, key)) for one in marks)
            yield f"{opening} ({' | '.join(self._json(schema, same, tool))}) {ending}"

    def _json(self, schema: Any, kinds: list[str], tool: Tool) -> Iterable[str]:
        loose = self._parameters.loose
        for one in kinds:
            if one in loose:
                yield _LITERALS.get(one) or self._any_loose(one)
        strict = [one for one in kinds if one not in loose]
        if strict:
            yield self._held(schema, strict, tool)

    def _held(self, schema: Any, kinds: list[str], tool: Tool) -> str:
        """Return the name of the rule for JSON values of these types that follow a schema."""
        given = dict(schema) if isinstance(schema, Mapping) else {}
        defined = {key: tool.schema[key] for key in ("$defs", "definitions") if key in tool.schema}
        if kinds_of(schema) != frozenset(kinds):
            given = {"allOf": [given, {"type": kinds}]} if given else {"type": kinds}
        try:
            text = schema_grammar({**defined, **given}).text
        except ArgumentError:
            text = schema_grammar({"type": kinds}).text
        return self._share(json_rule(text))

    def _text(self, schema: Any, ending: str) -> str:
        """Return the rule for a text and its ending."""
        values = schema.get("enum") if isinstance(schema, Mapping) else None
        if isinstance(values, list) and values and all(isinstance(one, str) for one in values):
            return f"({' | '.join(map(literal, values))}) {self._write(ending)}"
        return self._any_text(ending)

    def _any_text(self, ending: str) -> str:
        """Return the rule for any text up to the first occurrence of its ending."""
        core = ending.strip()
        lead, _, after = ending.partition(core)
        mark = next((one for one in self._write.control if core.startswith(one)), "")
        end = lead + (mark or core)
        name = self._share(regex_rule("(?s:.*)"), f"[suffix={literal(end)}]")
        after = self._write(core.removeprefix(mark) + after if mark else after)
        if not mark:
            return f"{name} {after}"
        without = f"/(?s:.*)/ & ~{regex_rule(f'(?s:.*){_escaped(end)}(?s:.*)')}"
        token = f"<[{self._write.control[mark]}]>"
        return f"({name} | {self._share(without, terminal=True)}? {token}) {after}"

    def _any(self) -> str:
        """Return the rule for any parameters."""
        around = self._parameters.around
        opening, ending = around("string")
        if KEY in ending:
            return '""'
        one = f"{self._write(self._parameters.begin)} {_KEY} {self._write(opening)} "
        name = self._share(one + self._text({}, ending))
        separator = self._write(self._parameters.separator)
        return f"({name} ({separator} {name})*)?"

    def _any_loose(self, kind: str) -> str:
        """Return the name of the rule for any object or list that is not written as JSON."""
        quote = self._parameters.quote
        text = self._any_text(quote)
        string = f"{self._write(quote)} {text}"
        names = {one: f"{self._prefix}{one}" for one in ("value", "object", "array")}
        texts = json_rule(_STRING)
        key = _KEY if len(quote) > 1 else f"({string} | {texts})"
        space = '" "?'
        self.shared |= {
            names["value"]: f"{names['object']} | {names['array']} | {string} | "
            + " | ".join((json_rule('{"type": ["number", "string"]}'), *_LITERALS.values())),
            names["object"]: f'"{{" ({key} ":" {space} {names["value"]} ("," {space} {key} ":" '
            f'{space} {names["value"]})*)? "}}"',
            names["array"]: f'"[" ({names["value"]} ("," {space} {names["value"]})*)? "]"',
        }
        return names[kind]

    def _share(self, rule: str, attributes: str = "", *, terminal: bool = False) -> str:
        """Return the name of a shared rule or terminal; equal ones are written once."""
        known = (rule, attributes)
        if known not in self._names:
            name = f"{self._prefix}{len(self._names)}"
            self._names[known] = name.upper() if terminal else name
            self.shared[self._names[known] + attributes] = rule
        return self._names[known]


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~/-])", r"\\\1", text)
