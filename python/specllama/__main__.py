"""The command `specllama`."""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

from specllama import __version__, _core
from specllama.commands import _arguments
from specllama.commands.default_model import default_model
from specllama.commands.foreign_options import advice, read, translated
from specllama.errors import SpecllamaError

_COMMANDS = ("chat", "serve", "models", "demo", "bench", "trace", "corpus", "alpha", "divergence")
"""In the order of `--help`; each is a module."""


_PIPE_CLOSED = 128 + signal.SIGPIPE
"""The exit code that a shell uses for a program ended by SIGPIPE."""


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, without the usage; so do its subcommands. Each command's
    defaults contain its parser as `parser`. Options must be given in full: -ctk is not -c tk."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def format_help(self) -> str:
        """With a usage of one line, since all options are listed below it."""
        places = (one.metavar or one.dest for one in self._get_positional_actions())
        self.usage = " ".join(["%(prog)s [options]", *map(str, places)])
        return super().format_help()

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        return []  # otherwise argparse would read -ctk as -c with the value "tk"

    def set_defaults(self, **defaults: Any) -> None:
        super().set_defaults(parser=self, **defaults)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:  # help; argparse would ignore write errors
            print(message, end="", flush=True)
        else:
            super()._print_message(message, file)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            alike = difflib.get_close_matches(str(value), action.choices, n=1)
            meant = f"did you mean {alike[0]}?" if alike else f"one of {', '.join(action.choices)}"
            self.error(f"there is no command {value!r:.80}; {meant}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")


def _make_parser(names: Sequence[str] = _COMMANDS) -> _Parser:
    """Return a parser for these commands. Only their modules are imported."""
    parser = _Parser(
        prog="specllama",
        description="Lossless speculative decoding for GGUF models. (To answer a single prompt in "
        "a script, use spec-cli.)",
        epilog="Example: specllama chat -m model.gguf. Options of a command: specllama chat "
        "--help.",
    )
    parser.add_argument("--version", action="version", version=f"specllama {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        import_module(f"specllama.commands.{name}").add_command(commands)
    return parser


def _known(parser: argparse.ArgumentParser) -> dict[str, bool]:
    """Return the options of a command, and for each whether exactly one value follows."""
    return {option: one.nargs is None for one in parser._actions for option in one.option_strings}


def options_of_commands() -> dict[str, dict[str, bool]]:
    """Return the options of all programs by the program's name."""
    parser = _make_parser()
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    own = {one.prog: _known(one) for one in commands.choices.values()}
    return {"spec-cli": _core.spec_cli_flags(), **own}


def _command(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[Any, int]:
    """Return the parser of the called command, and the number of arguments that name it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and argv and argv[0] in action.choices:
            command, n = _command(action.choices[argv[0]], argv[1:])
            return command, n + 1
    return parser, 0


def _parsed(argv: Sequence[str], parser: _Parser) -> argparse.Namespace:
    """Return the arguments, with options of other programs translated. If some are unknown, exits
    with a message about all of them."""
    command, n = _command(parser, argv)
    if n == 0:
        return parser.parse_args(argv)
    known = _known(command)
    own, refused = translated(argv[n:], known, command.prog)
    typed = dict.fromkeys(one.name for one in read(own, known) if one.name.startswith("-"))
    wrong = [*refused]
    wrong += [
        advice(name, known, options_of_commands)
        for name in typed
        if name not in known and not _is_number(name) and name != "-"
    ]
    if wrong:
        command.error("; ".join(wrong))
    arguments, rest = parser.parse_known_args([*argv[:n], *own])
    if rest:
        command.error(advice(rest[0].partition("=")[0], known, options_of_commands))
    arguments.typed = own  # the command's own options, in its words
    return arguments


def _name_model(arguments: argparse.Namespace) -> None:
    """Set the default model of a command that needs one, if none is given."""
    given = vars(arguments)
    named_otherwise = any(given.get(name) for name in ("target_url", "models", "models_dir"))
    if "model" in given and given["model"] is None and not named_otherwise:
        arguments.model = default_model("specllama", chats=given.get("chats", False))


def _is_number(text: str) -> bool:
    return text[1:2].isdigit()


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand and return the exit code: 0, 1 (failure), 2 (bad input), 130 (Ctrl-C) or 141
    (the reader closed the output pipe)."""
    given = sys.argv[1:] if argv is None else argv
    called = given[:1]
    parser = _make_parser(called if set(called) & set(_COMMANDS) else _COMMANDS)
    if sys.stderr is None:  # the caller closed it: error messages are dropped
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:  # the caller closed it
        print("specllama: Standard output is closed.", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, TextIOWrapper):  # its encoding may lack a model's characters
        sys.stdout.reconfigure(errors="replace")
    try:
        if not given:
            parser.print_help()
            return 0
        arguments = _parsed(given, parser)
        _name_model(arguments)
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except SpecllamaError as error:
        print(f"specllama: {_arguments.with_flags(str(error), arguments.parser)}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:
        if error.filename is not None:  # about a named file, so not from printing
            raise
        # Text left in the buffer would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            return _PIPE_CLOSED
        why = error.strerror
        print(
            f"specllama: The result cannot be written to standard output: {why}.", file=sys.stderr
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
