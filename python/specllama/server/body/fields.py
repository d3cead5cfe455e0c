"""Reads and checks the fields of a request's body."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from specllama.requests.json_text import parsed, with_whole_characters
from specllama.server.error import ApiError
from specllama.server.media.access import MediaAccess

_KINDS: dict[type, str] = {list: "a list", dict: "an object"}


class Fields:
    """The fields of a JSON object. The type of a field is checked when it is read.

    A null field counts as left out, as in the OpenAI API. A wrong type raises ApiError with the
    field's name.

    Args:
        values: The object.
        name: The object's name in error messages; "" for the request itself.

    Attributes:
        n_bytes: Size of the parsed body; 0 for an object inside a body.
        media: Allowed sources of images and sounds; None: only the request itself.
    """

    n_bytes = 0
    media: MediaAccess | None = None

    def __init__(self, values: Mapping[str, Any], name: str = "") -> None:
        self._values = {key: value for key, value in values.items() if value is not None}
        self._name = name

    @classmethod
    def parse(cls, body: bytes) -> Fields:
        """Read the body of a request. U+FFFD replaces half surrogate pairs: some clients cut texts
        inside a character, and such a text stays in the history that they send. Raises ApiError if
        the body is not a JSON object."""
        try:
            values = with_whole_characters(parsed(body))
        except ValueError as error:
            raise ApiError(400, f"The body is not JSON: {error!s:.200}.") from None
        if not isinstance(values, dict):
            raise ApiError(400, "The body must be a JSON object.")
        fields = cls(values)
        fields.n_bytes = len(body)
        return fields

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def given(self) -> Mapping[str, Any]:
        """All fields that were given and are not null."""
        return self._values

    def any(self, name: str) -> Any:
        """Return a field of any type; None if it was left out."""
        return self._values.get(name)

    def text(self, name: str, default: str = "") -> str:
        """Return a field that is a string."""
        value = self._values.get(name, default)
        if not isinstance(value, str):
            self.refuse(name, "a string")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a field that is true or false."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            self.refuse(name, "true or false")
        return value

    def integer(self, name: str, *, low: int, high: int) -> int | None:
        """Return a field that is a whole number; None if it was left out."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(name, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a field that is a number."""
        value = self._values.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(name, "a number")
        try:
            return float(value)
        except OverflowError:
            return math.inf

    def object(self, name: str) -> Fields:
        """Return a field that is itself an object; without fields if it was left out."""
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            self.refuse(name, "an object")
        return Fields(value, self.full_name(name))

    def required(self, name: str) -> None:
        """Raise ApiError if a field was left out."""
        if name not in self._values:
            field = self.full_name(name)
            raise ApiError(400, f"{field} is missing.", param=field)

    def refuse(self, name: str, wanted: str) -> NoReturn:
        """Raise ApiError for a field whose value is not as `wanted` describes it."""
        field = self.full_name(name)
        value = self._values[name]
        got = _KINDS.get(type(value)) or json.dumps(value)
        raise ApiError(400, f"{field} must be {wanted}, not {got:.80}.", param=field)

    def refuse_unsupported(self, *names: str) -> None:
        """Raise ApiError if one of these fields is set to anything but an empty value or "none"."""
        for name in names:
            if self._values.get(name) not in (None, [], "none", "", False):
                field = self.full_name(name)
                raise ApiError(
                    400, f"{field} is not supported; leave it out.", param=field, code="unsupported"
                )

    def full_name(self, name: str) -> str:
        """Return the full name of a field, including the object that it is in."""
        return f"{self._name}.{name}" if self._name else name
