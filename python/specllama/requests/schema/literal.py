"""Texts as they stand in a grammar."""

from __future__ import annotations

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def literal(text: str) -> str:
    """Return a text as a GBNF literal."""
    return f'"{text.translate(_ESCAPES)}"'
