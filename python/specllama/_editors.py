"""Completion of options in editors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def completed(table: Any) -> Any:
    """Return a TypedDict of options as it is.

    Pyright and others complete a method's options from `**options: Unpack[Table]`. jedi, which
    completes in IPython and Jupyter, does not read that. But it follows `**options` to what the
    method calls with it, `Table(**options)`, and it takes a class for a dataclass, whose fields it
    completes, if its decorator returns one by any way. (An annotated return type would win, so it
    is Any.)
    """
    return dataclass(table) if table is None else table
