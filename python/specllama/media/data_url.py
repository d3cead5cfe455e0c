"""Data URLs, by which requests carry images and sounds."""

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
    """Return the bytes of a data URL. Its media type is ignored: the bytes say what they are.

    Raises:
        ArgumentError: It is no data URL, or its data are not base64. The sentence begins with
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
    """Return the bytes that base64 stands for; blanks and line ends in it are ignored, and padding
    may be missing. Raises ArgumentError."""
    packed = _BLANKS.sub("", data).rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (ValueError, binascii.Error):  # ValueError: characters that are not ASCII
        raise ArgumentError(f"{name} is not base64; encode the bytes of the file.") from None
