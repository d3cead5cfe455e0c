"""What is known of one option of a generation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

INT32 = 2**31 - 1


@dataclass(frozen=True)
class Range:
    """Which numbers an option may be. The core holds them to it, whoever asks; here they stand to
    be read.

    Attributes:
        low, high: The bounds.
        above: `low` itself is not allowed.
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
    """An option: how it is read, what it means, and where else it has a name.

    Attributes:
        default: What it is where it is left out.
        by_default: The same in words.
        check: Returns what was given as the core takes it; called with its name, for the message.
            Raises ArgumentError.
        doc: What it is for. The first sentence also explains it in tables and on command lines.
        kind: int or float of a number, else str.
        range: Of a number; None: it is none.
        flags: What it is called on command lines.
        api: What it is called in the server's requests, where that says no more than a number.
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
