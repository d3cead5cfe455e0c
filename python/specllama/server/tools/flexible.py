"""Marks as expressions that match them with any white space."""

from __future__ import annotations

import re

from specllama.model.marks import ID, INDEX, NAME

_NAME = r"[\w.:/-]{1,128}"
_NAME_ENDS = r"(?![\w./-])(?!$)"
_SLOTS = {INDEX: r"\d{1,9}", ID: r"[\w.:-]{1,128}"}


def flexible(mark: str) -> str:
    """Return an expression for a mark; the group `name` is the tool's name."""
    found = ""
    for part in re.split(rf"(\s+|[{NAME}{INDEX}{ID}])", mark):
        if part.isspace():
            found += r"\s*"
        elif part == NAME:
            found += "(?P=name)" if "(?P<name>" in found else f"(?P<name>{_NAME})"
            found += _NAME_ENDS
        else:
            found += _SLOTS.get(part, re.escape(part))
    return found
