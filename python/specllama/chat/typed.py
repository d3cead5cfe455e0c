"""Messages as they are typed: of a line, or of several."""

from __future__ import annotations

QUOTES = '"""'
"""Before and after a message of several lines."""

CONTINUES = "\\"
"""At the end of a line that another one follows."""


def is_open(text: str) -> bool:
    """Whether quotes were opened that are not closed yet."""
    quoted = text.strip()
    closed = len(quoted) >= 2 * len(QUOTES) and quoted.endswith(QUOTES)
    return quoted.startswith(QUOTES) and not closed


def is_command(text: str) -> bool:
    """Whether it begins with the name of a command: a slash and a word. A path does not, and behind
    a blank nothing does."""
    name = text[1:].split(maxsplit=1)[:1]
    return text.startswith("/") and (not name or "/" not in name[0]) and text[1:2] != " "


def message(text: str) -> str:
    """Return what is said: without quotes around it, and blanks."""
    said = text.strip()
    if said.startswith(QUOTES):
        said = said.removeprefix(QUOTES).removesuffix(QUOTES).strip("\n")
    return said
