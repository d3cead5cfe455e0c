"""The description of one option of a generation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

INT32 = 2**31 - 1


@dataclass(frozen=True)
class Range:
    """The numbers that an option may be. For people to read, in help texts; the check itself is
    done by the core, for every caller.

    Attributes:
        low, high: The bounds, themselves allowed.
        above: Whether `low` itself is not allowed.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def __str__(self) -> str:
        if self.low == -math.inf:
            return "any"
        if self.high in (math.inf, INT32):
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        high = "2^64 - 1" if self.high == 2**64 - 1 else f"{self.high:g}"
        return f"more than {self.low:g} to {high}" if self.above else f"{self.low:g} to {high}"


@dataclass(frozen=True)
class Field:
    """An option: how it is read, what it means, and its names on command lines and in the API.

    Attributes:
        default: The value of an option that is left out.
        by_default: The default in words.
        check: Called with the option's name (for error messages) and the given value; returns the
            value in the form the core takes. Raises ArgumentError.
        doc: What the option is for. Tables and command lines show only the first sentence.
        kind: int or float if the option is a number, else str.
        range: The numbers allowed; None: the option is not a number.
        flags: The option's flags on command lines; empty: no flag that commands share.
        api: The option's name in the server's requests, if its value there is a plain number.
    """

    default: Any
    by_default: str
    check: Callable[[str, Any], Any]
    doc: str
    kind: type[Any] = str
    range: Range | None = None
    flags: tuple[str, ...] = ()
    api: str | None = None

    @property
    def brief(self) -> str:
        """The first sentence, without its full stop."""
        return self.doc.split(". ")[0].rstrip(".")
