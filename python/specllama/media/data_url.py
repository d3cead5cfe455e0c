"""Data URLs, which contain the images and sounds of requests."""

from __future__ import annotations

import base64
import binascii
import re

from specllama import _check
from specllama.errors import ArgumentError

SCHEME = "data:"

_HEAD = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64", re.ASCII | re.IGNORECASE)
_LONGEST_HEAD = 256
_BLANKS = re.compile(r"[ \t\r\n]+")


def content(name: str, url: str) -> bytes:
    """Return the bytes of a data URL. Its media type is ignored, because the bytes show their type.

    Raises:
        ArgumentError: It is not a data URL, or its data are not base64. The message begins with
            `name`.
    """
    head, comma, data = url.partition(",")
    if not comma or len(head) > _LONGEST_HEAD or not _HEAD.fullmatch(head):
        raise ArgumentError(
            f'{name} must be a data URL like "data:image/png;base64,...", not '
            f"{_check.quoted(url[:_LONGEST_HEAD])}."
        )
    return from_base64(name, data)


def from_base64(name: str, data: str) -> bytes:
    """Decode base64. Blanks and line ends are ignored, and padding may be missing. Raises
    ArgumentError."""
    packed = _BLANKS.sub("", data).rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (ValueError, binascii.Error):  # ValueError: characters that are not ASCII
        raise ArgumentError(f"{name} is not base64; encode the bytes of the file.") from None
