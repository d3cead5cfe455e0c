"""Files that a user names: to read, and to write at the end of a long run."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specllama.errors import ArgumentError, SpecllamaError


def read(path: str | os.PathLike[str]) -> bytes:
    """Return what is in a file. Raises ArgumentError, with the reason, if it cannot be read."""
    with _reading(path):
        return Path(path).read_bytes()


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8. Raises as above."""
    with _reading(path):
        return Path(path).read_text(encoding="utf-8")


def read_prompt(path: str) -> str:
    """Return the text of a file, or what comes from standard input if it is "-"; a last newline is
    left out, as spec-cli does. Raises as above."""
    piped = path == "-"
    with (
        _reading("standard input" if piped else path),
        open(0 if piped else path, "rb", closefd=not piped) as file,
    ):
        return file.read().decode().removesuffix("\n")


def check_writable(path: str) -> None:
    """See before the run whether a file can be written; what is in it stays.

    Raises:
        SpecllamaError: It cannot; the sentence says why.
    """
    with _writing(path), open(path, "a"):
        pass


def write(path: str, text: str) -> None:
    """Write a text in UTF-8, in place of what was in the file. Raises as `check_writable`."""
    with _writing(path):
        Path(path).write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of an empty file beside `path` that takes its place when all went well, and is
    gone if not: what is there is whole, always.

    Raises:
        SpecllamaError: It cannot be written; what had that name before is still there.
    """
    if "\0" in str(path):
        raise SpecllamaError(f"{path} cannot be written: it is no path.")
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        fresh.touch()  # it can be written: known before the work is done
        yield fresh
        fresh.replace(path)
    except OSError as error:
        raise SpecllamaError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            fresh.unlink()


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} cannot be read: it is not UTF-8.") from None
    except ValueError:  # a NUL in it
        raise ArgumentError(f"{str(path)!r} cannot be read: it is no path.") from None


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no path"
        raise SpecllamaError(f"{path} cannot be written: {why}.") from None
