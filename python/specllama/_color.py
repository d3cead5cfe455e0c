"""Colours in a terminal."""

from __future__ import annotations

import os
from typing import TextIO

GREEN, DIM = "\x1b[32m", "\x1b[2m"
_RESET = "\x1b[0m"


def painted(text: str, color: str, wanted: bool) -> str:
    """Return a text in a colour if `wanted`; an empty text is unchanged."""
    return f"{color}{text}{_RESET}" if wanted and text else text


def has_colors(stream: TextIO) -> bool:
    """Whether the stream is a terminal whose user wants colours (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
