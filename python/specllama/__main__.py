"""The command `specllama`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from io import TextIOWrapper
from typing import Any, NoReturn

from specllama import __version__
from specllama.commands import (
    _arguments,
    alpha,
    bench,
    chat,
    corpus,
    demo,
    divergence,
    models,
    serve,
    trace,
)
from specllama.commands.habits import advice
from specllama.errors import SpecllamaError

_COMMANDS = (alpha, bench, chat, corpus, demo, models, divergence, serve, trace)
"""In the order in which `--help` shows them."""


_PIPE_CLOSED = 128 + signal.SIGPIPE
"""As a shell says of a program that ended so."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in a sentence, without the usage before it; so do its subcommands. It is
    among the defaults of its command, as `parser`. Options are given in full: -ctk is no -c."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        return []  # else a short option is read with what stands behind its letter as its value

    def set_defaults(self, **defaults: Any) -> None:
        super().set_defaults(parser=self, **defaults)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand and return the exit code: 0, 1 (failure), 2 (bad input), 130 (Ctrl-C), 141
    (the reader of its output has gone)."""
    parser = _Parser(
        prog="specllama",
        description="Lossless speculative decoding for GGUF models. Plain generation: spec-cli.",
    )
    parser.add_argument("--version", action="version", version=f"specllama {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_command(commands)
    if sys.stderr is None:  # closed by who started this: there is nobody to be told
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        actions = arguments.parser._actions
        known = [option for action in actions for option in action.option_strings]
        arguments.parser.error(advice(unknown, known))
    if sys.stdout is None:  # closed by who started this
        print("specllama: Standard output is closed.", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, TextIOWrapper):  # whose encoding may lack what a model says
        sys.stdout.reconfigure(errors="replace")
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except SpecllamaError as error:
        print(f"specllama: {_arguments.with_flags(str(error), arguments.parser)}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:
        if error.filename is not None:  # not from printing
            raise
        # What is left in the buffer would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read it has seen enough
            return _PIPE_CLOSED
        why = error.strerror
        print(
            f"specllama: The result cannot be written to standard output: {why}.", file=sys.stderr
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
