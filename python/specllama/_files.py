"""Files named by the user: to read, or to write at the end of a long run."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from specllama.errors import ArgumentError, SpecllamaError

_HANDED_OVER = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
"""Prefixes of paths to files that were open when the process started, e.g. a shell's <(...) and
>(...). Another process is at the other end."""

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
"""Names of standard input in options, and its paths."""

_MOST = 100_000_000
"""Maximum number of bytes that are read, as in spec-cli: a longer text probably never ends."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to read.

    Raises:
        ArgumentError: It cannot be read (the message says why); or it is a pipe, which may block
            the reader, or a device, which may never end.
    """
    handed_over = is_handed_over(path)
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    more = 0 if handed_over else os.O_NONBLOCK
    with (
        _reading(path),
        open(path, "rb", opener=lambda name, flags: os.open(name, flags | more)) as file,
    ):
        if not (handed_over or stat.S_ISREG(os.fstat(file.fileno()).st_mode)):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield file


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file. Raises the errors of `opened`, and ArgumentError for more than
    100 MB."""
    with opened(path) as file:
        return _all(file)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8, with plain newlines and without a byte order mark. Raises
    the errors of `read`, and ArgumentError if it is not UTF-8."""
    with _reading(path):
        return read(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def read_prompt(path: str) -> str:
    """Return the text of a file, or of standard input if `path` is "-", without a byte order mark
    and a final line end, as spec-cli does. Other Windows line ends are kept, with a note on stderr.
    Raises the errors of `read_text`."""
    piped = path == "-"
    name = "standard input" if piped else path
    with _reading(name):
        text = (_read_input() if piped else read(path)).decode("utf-8-sig")
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r\n" in text:
        print(f"Note: {name} has Windows line ends (CR LF), which are kept.", file=sys.stderr)
    return text


def check_writable(path: str) -> None:
    """Check before a run that a file can be written. An existing file keeps its content; a new one
    is removed again.

    Raises:
        SpecllamaError: It cannot be written (the message says why); or it is a pipe, which may
            block the writer, or a disk, which would be damaged.
    """
    with _writing(path):
        named = Path(path)
        if (named.is_fifo() or named.is_block_device()) and not is_handed_over(path):
            raise OSError(errno.EINVAL, "it is not a regular file")
        is_new = not os.path.lexists(path)
        with open(path, "a"):
            pass
        if is_new:
            named.unlink()


def write(path: str, text: str) -> None:
    """Write a text in UTF-8, replacing the file's content. A terminal or a pipe is written to.
    Raises the errors of `check_writable` and `replacing`."""
    if os.path.isfile(path) or not os.path.lexists(path):
        with replacing(Path(path)) as fresh:
            fresh.write_text(text, encoding="utf-8")
        return
    with _writing(path):
        Path(path).write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of an empty file to write to. At the end it replaces the file at `path`; after
    an error it is removed. So `path` is never incomplete. If `path` is a link, its target is
    replaced.

    On Linux the file has no name until it is complete, so a killed process leaves nothing behind.

    Raises:
        SpecllamaError: `path` cannot be written, or is not a regular file; its old content is kept.
    """
    with _writing(path):
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if os.path.lexists(place) and not place.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        mode = stat.S_IMODE(place.stat().st_mode) if place.is_file() else None
        named = place.parent / f"{place.name}.{os.getpid()}.{threading.get_ident()}"
        file = _unnamed(place.parent)
        is_named = file is None
        if file is None:
            file = os.open(named, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            yield named if is_named else Path(f"/proc/self/fd/{file}")
            if mode is not None:
                os.fchmod(file, mode)
            os.fsync(file)
            if not is_named:
                # With a folder, os.link follows the link in /proc to the file.
                os.link(f"/proc/self/fd/{file}", named, src_dir_fd=file)
                is_named = True
            named.replace(place)
        finally:
            os.close(file)
            if is_named:
                with suppress(OSError):
                    named.unlink()


def _unnamed(folder: Path) -> int | None:
    """Open a new file without a name; None if this system, or the folder's file system, does not
    support it."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def is_handed_over(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names a file that was open when the process started."""
    return os.fspath(path).startswith(_HANDED_OVER)


def input_is_piped() -> bool:
    """Return whether standard input is a pipe or a non-empty file. spec-cli uses the same rule."""
    try:
        kind = os.fstat(0)
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(kind.st_mode) or (stat.S_ISREG(kind.st_mode) and kind.st_size > 0)


def _read_input() -> bytes:
    with open(0, "rb", closefd=False) as file:
        return _all(file)


def _all(file: BinaryIO) -> bytes:
    content = bytearray()
    while part := file.read(1 << 20):
        content += part
        if len(content) > _MOST:
            raise OSError(errno.EFBIG, "it has more than 100 MB")
    return bytes(content)


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except SpecllamaError:  # its message is complete
        raise
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} cannot be read: it is not UTF-8.") from None
    except ValueError:  # the path has a NUL
        raise ArgumentError(f"{str(path)!r} cannot be read: it is not a path.") from None


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except SpecllamaError:  # its message is complete
        raise
    except OSError as error:
        raise SpecllamaError(f"{path} cannot be written: {error.strerror}.") from None
    except ValueError:  # the path has a NUL
        raise SpecllamaError(f"{path} cannot be written: it is not a path.") from None
