"""Shapes of calls: the fixed texts around the names and arguments of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specllama.model.marks import ID, INDEX, KEY, NAME, TAG

KINDS = ("string", "integer", "number", "boolean", "null", "object", "array")
"""Types of JSON values."""

_SLOTS = f"([{NAME}{INDEX}{ID}])"

_NAME = r"[\w.:/-]{1,128}"
_NAME_ENDS = r"(?![\w./-])(?!$)"
_FILLED = {INDEX: r"\d{1,9}", ID: r"[\w.:-]{1,128}"}


@dataclass(frozen=True)
class Parameters:
    """The form of arguments with marks around names and values.

    Attributes:
        begin: The text before each name.
        openings: The text between name and value, by the value's type.
        endings: The text after the value, by its type; KEY is the placeholder of the name.
        separator: The text between two parameters.
        loose: Types of values that are not written as JSON.
        quote: The text around each string inside such a value.
        verbatim: Other texts around a text with special characters; None: the usual ones.
    """

    begin: str
    openings: Mapping[str, str]
    endings: Mapping[str, str]
    separator: str = ""
    loose: frozenset[str] = frozenset()
    quote: str = "'"
    verbatim: tuple[str, str] | None = None

    def around(self, kind: str) -> tuple[str, str]:
        """Return the texts around a value of a type."""
        return self.openings[kind], self.endings[kind]


@dataclass(frozen=True)
class Shape:
    """The form of calls. Its texts (marks) have slots for the parts that differ between calls.

    Attributes:
        head: The text before a call's arguments, with NAME in it.
        tail: The text after the arguments.
        opening: The text before the first call.
        separator: The text between two calls.
        closing: The text after the last call.
        parameters: The form of arguments; None: one JSON object.
        spread: Whether that object may have line breaks and indentation.
        trigger: The text that begins calls, if its first tag may also begin something else.
    """

    head: str
    tail: str
    opening: str = ""
    separator: str = ""
    closing: str = ""
    parameters: Parameters | None = None
    spread: bool = False
    trigger: str = ""

    @property
    def marks(self) -> list[str]:
        """All fixed texts of the shape."""
        found = [self.opening, self.head, self.tail, self.separator, self.closing]
        if self.parameters is not None:
            one = self.parameters
            found += [one.begin, one.separator, *one.openings.values(), *one.endings.values()]
        return [
            part for one in found for part in re.split(f"[{NAME}{INDEX}{ID}{KEY}]", one) if part
        ]

    def openings(self, names: Sequence[str]) -> list[str]:
        """Return the texts with which a call of one of these tools may begin: up to a tag if there
        is one; else up to the tool's name and the character after it."""
        if self.trigger:
            return [self.trigger]
        if tags := list(TAG.finditer(self.opening)):
            return [self.opening[: tags[-1].end()]]
        if tag := TAG.search(self.head.partition(NAME)[0]):
            return [self.opening + self.head[: tag.end()]]
        before, _, after = (self.opening + self.head).partition(NAME)
        return [before.lstrip() + name + after[:1] for name in names]

    def written(self, calls: Sequence[Mapping[str, Any]]) -> str:
        """Return the text of calls, given as in a message's `tool_calls`."""
        found = ""
        for i, call in enumerate(calls):
            function = call["function"]
            call_id = str(call.get("id", ""))
            slots: dict[str, str] = {NAME: function["name"], INDEX: str(i), ID: call_id}
            head, tail = (
                "".join(slots.get(part, part) for part in re.split(_SLOTS, one))
                for one in (self.head, self.tail)
            )
            found += self.separator * bool(i) + head + self._arguments(function["arguments"]) + tail
        return self.opening + found + self.closing

    def _arguments(self, arguments: Any) -> str:
        if self.parameters is None or not isinstance(arguments, Mapping):
            return json.dumps(arguments, ensure_ascii=False)
        found = []
        for key, value in arguments.items():
            is_text = isinstance(value, str)
            opening, ending = self.parameters.around("string" if is_text else "object")
            text = value if is_text else json.dumps(value, ensure_ascii=False)
            found.append(self.parameters.begin + key + opening + text + ending.replace(KEY, key))
        return self.parameters.separator.join(found)


def flexible(mark: str) -> str:
    """Return an expression that matches a mark with any white space. Its group `name` matches the
    tool's name."""
    found = ""
    for part in re.split(rf"(\s+|[{NAME}{INDEX}{ID}])", mark):
        if part.isspace():
            found += r"\s*"
        elif part == NAME:
            found += "(?P=name)" if "(?P<name>" in found else f"(?P<name>{_NAME})"
            found += _NAME_ENDS
        else:
            found += _FILLED.get(part, re.escape(part))
    return found
