"""Corpora: the user's own texts, tokenized and indexed once, for drafts in every session."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from specllama import _check, _core, _files
from specllama._progress import bar
from specllama.errors import ArgumentError

MAX_TOKENS = 10_000_000
"""Default limit on the tokens of a corpus. Its file has 9 bytes per token."""

_MAGIC = b"speccorp"
"""The first bytes of a corpus, as in csrc/draft/corpus/corpus_file.h."""

# Characters tokenized at once, which limits the delay of Ctrl-C.
_PIECE = 1 << 18


@dataclass(frozen=True)
class Built:
    """The result of a build.

    Attributes:
        n_texts: Files in the corpus; the last may be incomplete.
        n_tokens: Tokens of these files, and one more for the end of each.
        n_skipped: Files without text: not UTF-8, with NUL characters, or unreadable.
        n_left_out: Files that did not fit.
    """

    n_texts: int
    n_tokens: int
    n_skipped: int
    n_left_out: int


def find_files(paths: Sequence[Path], patterns: Sequence[str] = ()) -> list[Path]:
    """Return the given files and the files in the given folders, each once, the most recently
    changed first. In a folder, hidden files and folders, and links to targets outside of it, are
    ignored.

    Args:
        paths: Files and folders.
        patterns: Glob patterns, e.g. "*.py"; the name of a file in a folder must match one of them.
            Without patterns, all files are taken.

    Raises:
        ArgumentError: A file or folder does not exist, or no file is found.
    """
    found: dict[str, tuple[float, Path]] = {}
    for path in paths:
        if not (os.path.isfile(path) or os.path.isdir(path)):
            raise ArgumentError(f"There is no file or folder {path}.")
        for file in _below(path, patterns) if os.path.isdir(path) else [path]:
            try:
                found.setdefault(os.path.realpath(file), (file.stat().st_mtime, file))
            except OSError:
                continue  # gone, or a link to nowhere
    if not found:
        named = f" with a name like {' or '.join(patterns)}" if patterns else ""
        raise ArgumentError(f"There is no file{named} in {', '.join(map(str, paths))}.")
    return [file for _, file in sorted(found.values(), key=lambda one: (-one[0], one[1]))]


def build(
    model: str | os.PathLike[str],
    files: Sequence[Path],
    output: str | os.PathLike[str],
    *,
    max_tokens: int = MAX_TOKENS,
    progress: bool = False,
) -> Built:
    """Write a corpus of text files, for models with a given vocabulary.

    Args:
        model: Path of a GGUF file; only its vocabulary is read.
        files: Files to add, in this order, until the corpus is full.
        output: The corpus file. It is replaced completely at the end, or not at all.
        max_tokens: Maximum number of tokens, 1 to 2^28.
        progress: Draw a bar on stderr.

    Raises:
        ArgumentError: No file is text, or none fits; `output` exists and is not a corpus; or an
            argument is wrong.
        ModelError: The model cannot be used.
        SpecllamaError: The corpus cannot be written.
    """
    builder = _core.CorpusBuilder(_check.integer("max_tokens", max_tokens))
    path = Path(_check.path("output", output))
    _check_replaceable(path)
    tokenizer = _core.Tokenizer(_check.path("model", model))
    with _files.replacing(path) as fresh:
        built = _fill(builder, tokenizer, files, progress)
        if built.n_texts == 0 and built.n_left_out:
            raise ArgumentError(
                f"max_tokens is {max_tokens}, which leaves no room for a text; raise it."
            )
        builder.write(str(fresh), tokenizer.n_vocab, tokenizer.fingerprint)
    return built


def _check_replaceable(path: Path) -> None:
    """Raise ArgumentError if a file that is not a corpus would be overwritten."""
    if not os.path.isfile(path):
        return
    with _files.opened(path) as file:
        begin = file.read(len(_MAGIC))
    if begin not in (b"", _MAGIC):
        raise ArgumentError(f"{path} exists and is not a corpus; choose another name.")


def _fill(
    builder: _core.CorpusBuilder, tokenizer: _core.Tokenizer, files: Sequence[Path], progress: bool
) -> Built:
    n_skipped = n_left_out = 0
    sizes = [_size(file) for file in files]
    hidden = {} if progress else {"disable": True}
    with bar(
        total=sum(sizes), desc="tokenizing", unit="B", unit_scale=True, delay=0.3, **hidden
    ) as shown:
        for file, size in zip(files, sizes, strict=True):
            if builder.full:
                n_left_out += 1
                continue
            try:
                for piece in _pieces(file):
                    builder.append(tokenizer.tokenize(piece, add_special=False))
            except (OSError, UnicodeDecodeError, ArgumentError):
                n_skipped += 1
            builder.end_text()
            shown.update(size)
    if builder.n_texts == 0 and not n_left_out:
        raise ArgumentError("None of the files is UTF-8 text; give files of text.")
    return Built(builder.n_texts, builder.n_tokens, n_skipped, n_left_out)


def _pieces(file: Path) -> Iterator[str]:
    """Yield a file's text in pieces of whole lines, unless a line is very long. Raises
    ArgumentError if it cannot be read, and UnicodeDecodeError if it is not text."""
    with _files.opened(file) as binary, TextIOWrapper(binary, "utf-8", newline="") as stream:
        # Files of the kernel, which may never end, have a size of 0.
        while os.fstat(binary.fileno()).st_size > 0 and (piece := stream.read(_PIECE)):
            piece += stream.readline(_PIECE)
            if "\0" in piece:
                raise UnicodeDecodeError("utf-8", b"\0", 0, 1, "no text")
            yield piece


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _below(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    top = os.path.realpath(folder)
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            fits = not patterns or any(fnmatch.fnmatch(name, one) for one in patterns)
            path = os.path.join(place, name)
            if not fits or name.startswith(".") or not os.path.isfile(path):
                continue
            if not os.path.islink(path) or Path(os.path.realpath(path)).is_relative_to(top):
                yield Path(path)
