"""Converts the values of parameters with marks to JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from specllama.dialogue.tools.manner import kind_of
from specllama.dialogue.tools.shape import KINDS
from specllama.requests.json_text import parsed

_DEEPEST = 64
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_WORD = re.compile(r"[^\s:,{}\[\]()'\"]+")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def kinds_of(schema: Any) -> frozenset[str]:
    """Return the types of JSON values that a parameter's schema allows."""
    if not isinstance(schema, Mapping):
        return frozenset(KINDS)
    given = schema.get("type")
    found = {given} if isinstance(given, str) else set(given) if isinstance(given, list) else set()
    for key in ("enum", "const"):
        if key in schema and not found:
            values = schema[key] if isinstance(schema[key], list) else [schema[key]]
            found = {kind_of(one) for one in values}
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and not found:
            found = set().union(*(kinds_of(one) for one in schema[key]))
    found = {one for one in found if one in KINDS}
    return frozenset(found | ({"integer"} if "number" in found else set()) or KINDS)


def read_value(text: str, kinds: frozenset[str], quote: str) -> str | None:
    """Convert a value to JSON. The model may write it as JSON, in Python's form, or with names and
    texts in other quotation marks. None if it is not of these types, or incomplete.

    Args:
        text: The value.
        kinds: The allowed types.
        quote: A further quotation mark.
    """
    text = text.strip()
    try:
        value = parsed(text)
    except ValueError:
        try:
            value = _LooseReader(text, quote).read()
        except ValueError:
            return None
    if kind_of(value) not in kinds and not (kinds & {"number"} and kind_of(value) == "integer"):
        return None
    return json.dumps(value, ensure_ascii=False)


class _LooseReader:
    """Reads a value in Python's or Gemma's form. Raises ValueError."""

    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._at = 0
        self._quotes = tuple(one for one in (quote, '"', "'") if one)

    def read(self) -> Any:
        """Return the value of the whole text."""
        value = self._value(0)
        self._blanks()
        if self._at != len(self._text):
            raise ValueError
        return value

    def _blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _takes(self, *texts: str) -> str:
        self._blanks()
        found = next((one for one in texts if self._text.startswith(one, self._at)), "")
        self._at += len(found)
        return found

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError
        if self._takes("{"):
            return self._object(depth)
        if self._takes("["):
            return self._list(depth)
        if quote := self._takes(*self._quotes):
            return self._string(quote)
        word = self._word()
        if _NUMBER.fullmatch(word):
            return parsed(word)
        if word not in _WORDS:
            raise ValueError
        return _WORDS[word]

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._takes("}"):
            if found and not self._takes(","):
                raise ValueError
            quote = self._takes(*self._quotes)
            key = self._string(quote) if quote else self._word()
            if not self._takes(":"):
                raise ValueError
            found[key] = self._value(depth + 1)
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while not self._takes("]"):
            if found and not self._takes(","):
                raise ValueError
            found.append(self._value(depth + 1))
        return found

    def _word(self) -> str:
        self._blanks()
        found = _WORD.match(self._text, self._at)
        if found is None:
            raise ValueError
        self._at = found.end()
        return found[0]

    def _string(self, quote: str) -> str:
        found = ""
        while not self._text.startswith(quote, self._at):
            if self._at >= len(self._text):
                raise ValueError
            one = self._text[self._at]
            self._at += 1
            if one == "\\" and len(quote) == 1 and self._at < len(self._text):
                one = self._text[self._at]
                self._at += 1
                one = _ESCAPES.get(one, one)
            found += one
        self._at += len(quote)
        return found
