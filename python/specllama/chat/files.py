"""Files attached to a message."""

from __future__ import annotations

import base64
import glob
import os
import re
from typing import Any

from specllama import _files
from specllama.errors import ArgumentError
from specllama.model.media_reader import MediaReader


def found(name: str) -> list[str]:
    """Return the path of a name, or all files that match it as a pattern. Raises ArgumentError if
    no file matches."""
    path = os.path.expanduser(name)
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    fitting = sorted(one for one in glob.glob(path, recursive=True) if os.path.isfile(one))
    if not fitting:
        raise ArgumentError(f"No file matches {name}.")
    return fitting


def medium(path: str, reader: MediaReader) -> dict[str, Any]:
    """Return an image or a sound in a file as a part of a message. Raises the errors of
    `_files.read` and of `reader`, which checks it."""
    from specllama.media.image_file import kind_of
    from specllama.media.sound import is_sound

    data = _files.read(path)
    encoded = base64.b64encode(data).decode()
    if is_sound(data):
        reader.sound(path, data)
        return {"type": "input_audio", "input_audio": {"data": encoded}}
    reader.image(path, data)
    kind = (kind_of(data) or "").lower()
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{encoded}"}}


def quoted(path: str) -> str:
    """Return a file's name and text in the form for a message. Raises the errors of
    `_files.read_text`, and ArgumentError if the name is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{path!r} cannot be sent: the name is not UTF-8; rename it.") from None
    return fenced(path, _files.read_text(path))


def fenced(name: str, text: str) -> str:
    """Return a text with its name, in the form for a message."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{name}:\n{fence}\n{text}{end}{fence}\n"
