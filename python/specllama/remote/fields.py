"""The fields of a server's answer. A server may be broken or hostile, so all values are read with
these methods."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from specllama import _check
from specllama.errors import RemoteError

_MOST_SAID = 300
"""Most characters of a server's message that an error repeats."""


class Fields:
    """A JSON object of an answer. Each method raises RemoteError, with the field and its value, if
    the field is missing or has a wrong type or value.

    Args:
        url: The server's address, for errors.
        given: The object.
        path: Name of the object with a final dot, if it is a part of another one.
    """

    def __init__(self, url: str, given: Mapping[str, Any], path: str = "") -> None:
        self._url = url
        self._given = given
        self._path = path

    @classmethod
    def parse(cls, url: str, message: str | bytes) -> Fields | None:
        """Return the fields of a JSON object; None if the message is not one."""
        try:
            given = json.loads(message)
        except (ValueError, RecursionError):
            return None
        return cls(url, given) if isinstance(given, dict) else None

    def __contains__(self, name: str) -> bool:
        return self._given.get(name) is not None

    def raw(self, name: str) -> Any:
        """Return a field of any type; None if it is missing."""
        return self._given.get(name)

    def object(self, name: str) -> Fields:
        """Return the fields of an object."""
        value = self._required(name)
        if not isinstance(value, dict):
            self.refuse(name, value, "an object")
        return Fields(self._url, value, f"{self._path}{name}.")

    def items(self, name: str, *, most: int) -> list[Any]:
        """Return a list of at most `most` elements of any type."""
        value = self._required(name)
        if not isinstance(value, list):
            self.refuse(name, value, "a list")
        if len(value) > most:
            self._fail(f'"{self._path}{name}" has {len(value)} elements, more than {most}')
        return value

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number; if it is missing, `default` (if given)."""
        value = self._given.get(name, default) if default is not None else self._required(name)
        return self.as_integer(name, value, low, high)

    def as_integer(self, name: str, value: Any, low: int, high: int) -> int:
        """Return a part of the field `name` that must be a whole number."""
        if type(value) is not int or not low <= value <= high:
            self.refuse(name, value, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        """Return a finite number; if it is missing, `default` (if given)."""
        value = self._given.get(name, default) if default is not None else self._required(name)
        return self.as_number(name, value, low, high)

    def as_number(self, name: str, value: Any, low: float, high: float) -> float:
        """Return a part of the field `name` that must be a finite number."""
        if type(value) not in (int, float) or not low <= value <= high:  # NaN is in no range
            self.refuse(name, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def text(self, name: str, most: int, default: str | None = None) -> str:
        """Return a text of at most `most` characters; if it is missing, `default` (if given)."""
        value = self._given.get(name, default) if default is not None else self._required(name)
        return self.as_text(name, value, most)

    def as_text(self, name: str, value: Any, most: int) -> str:
        """Return a part of the field `name` that must be a text."""
        if not isinstance(value, str):
            self.refuse(name, value, "a text")
        if len(value) > most:
            self._fail(f'"{self._path}{name}" has {len(value)} characters, more than {most}')
        try:
            value.encode()
        except UnicodeEncodeError:
            self.refuse(name, value, "a text without lone surrogates")
        return value

    def flag(self, name: str) -> bool:
        """Return a bool."""
        value = self._required(name)
        if not isinstance(value, bool):
            self.refuse(name, value, "true or false")
        return value

    def tokens(self, name: str, n_vocab: int, *, most: int) -> list[int]:
        """Return at most `most` token ids below `n_vocab`."""
        value = self.items(name, most=most)
        return [self.as_integer(name, token, 0, n_vocab - 1) for token in value]

    def message(self) -> str:
        """Return the server's error message, on one line and shortened; "" if there is none."""
        error = self._given.get("error")
        said = error.get("message") if isinstance(error, dict) else self._given.get("message")
        if not isinstance(said, str):
            return ""
        line = "".join(one if one.isprintable() else " " for one in said[:_MOST_SAID])
        return f"{line}..." if len(said) > _MOST_SAID else line

    def refuse(self, name: str, value: Any, wanted: str) -> NoReturn:
        """Raise the error for a wrong value of a field or of a part of it."""
        self._fail(f'"{self._path}{name}" is {_quoted(value)}, not {wanted}')

    def _required(self, name: str) -> Any:
        if name not in self._given:
            self._fail(f'"{self._path}{name}" is missing')
        return self._given[name]

    def _fail(self, what: str) -> NoReturn:
        raise RemoteError(
            f"{self._url} sent an unusable answer: {what}. Check that it is a server of the right "
            "kind and version."
        )


def _quoted(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _check.quoted(value)
