"""`specllama corpus`: puts your own texts into a file from which every session can draft."""

from __future__ import annotations

import argparse

from specllama import _check, _core
from specllama.commands import _arguments
from specllama.commands.whole_numbers import whole
from specllama.formats import corpus
from specllama.model import hub
from specllama.model.bundled import BUNDLED_MODEL


def build(arguments: argparse.Namespace) -> int:
    """Build a corpus; return the exit code."""
    files = corpus.find_files(arguments.paths, arguments.glob)
    built = corpus.build(
        hub.local_path("model", arguments.model or BUNDLED_MODEL),
        files,
        arguments.output,
        max_tokens=arguments.max_tokens,
        progress=True,
    )
    print(f"{built.n_tokens} tokens of {built.n_texts} files")
    if built.n_skipped:
        print(f"{built.n_skipped} files skipped: not UTF-8 text, or not readable")
    if built.n_left_out:
        print(f"{built.n_left_out} files left out, the least recently changed (--max-tokens)")
    return 0


def info(arguments: argparse.Namespace) -> int:
    """Describe a corpus; return the exit code."""
    opened = _core.Corpus(_check.path("file", arguments.file))
    print(
        f"{opened.n_tokens} tokens of {opened.n_texts} texts, {opened.size_bytes / 1e6:.1f} MB, "
        f"for vocabulary {opened.vocabulary:016x} of {opened.n_vocab} tokens"
    )
    return 0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `corpus` to the command line."""
    parser = commands.add_parser(
        "corpus",
        help="index your own texts, so that answers that quote them are faster",
        description=__doc__,
    )
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    builder = kinds.add_parser(
        "build",
        help="build a corpus",
        description="Builds a corpus of text files. The files that changed last are added first, "
        "until the corpus is full. Hidden files in folders, and files that are not UTF-8, are "
        "skipped.",
    )
    builder.add_argument(
        "paths", nargs="+", type=_arguments.path, metavar="PATH", help="file or folder"
    )
    _arguments.add_target(builder, help="model whose vocabulary is used, a GGUF file")
    builder.add_argument(
        "-o", "--output", type=_arguments.filled, required=True, metavar="FILE",
        help="file to write; an existing corpus is replaced",
    )  # fmt: skip
    builder.add_argument(
        "--glob", action="append", default=[], metavar="PATTERN",
        help="in folders, take only files whose name matches, e.g. '*.py'; may be repeated",
    )  # fmt: skip
    builder.add_argument(
        "--max-tokens", type=whole(), default=corpus.MAX_TOKENS, metavar="N",
        help=f"maximum number of tokens; each takes 9 bytes (default: {corpus.MAX_TOKENS})",
    )  # fmt: skip
    builder.set_defaults(run=build)
    shower = kinds.add_parser("info", help="check a corpus and describe it")
    shower.add_argument("file", metavar="FILE")
    shower.set_defaults(run=info)
