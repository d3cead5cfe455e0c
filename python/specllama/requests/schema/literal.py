"""Texts as they stand in a grammar."""

from __future__ import annotations

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def literal(text: str) -> str:
    """Return a text as a GBNF literal."""
    return f'"{text.translate(_ESCAPES)}"'


def in_set(character: str) -> str:
    """Return a character as it stands in a set of characters of GBNF."""
    is_plain = character.isascii() and character.isalnum()
    return character if is_plain else f"\\U{ord(character):08X}"
