"""Typed messages, in one line or several."""

from __future__ import annotations

QUOTES = '"""'
"""Put before and after a message of several lines."""

CONTINUES = "\\"
"""Put at the end of a line to continue it with the next one."""


def is_open(text: str) -> bool:
    """Whether the text has opening quotes without closing ones."""
    quoted = text.strip()
    closed = len(quoted) >= 2 * len(QUOTES) and quoted.endswith(QUOTES)
    return quoted.startswith(QUOTES) and not closed


def is_command(text: str) -> bool:
    """Whether the text begins with a command: a slash and a word without another slash. A path is
    not a command, and neither is a text with a blank before or after its first slash."""
    name = text[1:].split(maxsplit=1)[:1]
    return text.startswith("/") and (not name or "/" not in name[0]) and text[1:2] != " "


def message(text: str) -> str:
    """Return the message without quotes and blanks around it."""
    said = text.strip()
    if said.startswith(QUOTES):
        said = said.removeprefix(QUOTES).removesuffix(QUOTES).strip("\n")
    return said
