"""Files that commands write at the end of a long run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specllama.errors import SpecllamaError


def check_writable(path: str) -> None:
    """See before the run whether a file can be written; what is in it stays.

    Raises:
        SpecllamaError: It cannot; the sentence says why.
    """
    with _writing(path), open(path, "a"):
        pass


def write(path: str, text: str) -> None:
    """Write a text in UTF-8, in place of what was in the file. Raises as above."""
    with _writing(path):
        Path(path).write_text(text, encoding="utf-8")


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no path"
        raise SpecllamaError(f"{path} cannot be written: {why}.") from None
