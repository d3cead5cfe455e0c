"""`specllama trace`: shows which drafter proposed each token of an answer, and what was accepted,
as text or, with -o, as an HTML page."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from specllama import _files
from specllama._interrupt import Interrupt
from specllama.commands import _arguments
from specllama.commands.whole_numbers import UNTIL_FULL, whole
from specllama.errors import SpecllamaError
from specllama.formats.trace import Trace
from specllama.session import SpecSession


def run(arguments: argparse.Namespace) -> int:
    """Generate and write the trace; return the exit code."""
    prompt = arguments.prompt if arguments.file is None else _files.read_prompt(arguments.file)
    with SpecSession(**_arguments.session_options(arguments)) as session:
        options = _arguments.generate_options(arguments)
        options["max_tokens"] = arguments.n_predict
        options["trace"] = True
        stream = session.stream(_arguments.prompt_of(session, prompt, arguments), **options)
        if arguments.output is not None:
            _files.check_writable(arguments.output)
        with Interrupt(stream.cancel, patience=0.0) as interrupt:
            generation = stream.run()
            if generation.tokens or not interrupt.came:
                about = f"{session.model_description}, {datetime.now():%Y-%m-%d %H:%M}"
                _show(generation.trace, arguments.output, about)
            if not generation.tokens and generation.finish_reason == "stop":
                print("specllama: The text is empty: the model ended it at once.", file=sys.stderr)
    return 130 if interrupt.came else 0


def _show(trace: Trace | None, output: str | None, about: str) -> None:
    assert trace is not None  # options["trace"] is True
    if output is None:
        print(trace, flush=True)
        return
    try:
        _files.write(output, trace.to_html(about))
    except SpecllamaError:
        print(trace, flush=True)  # otherwise the trace would be lost
        raise


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `trace` to the command line."""
    parser = commands.add_parser(
        "trace", help="show which drafter proposed each token of an answer", description=__doc__
    )
    _arguments.add_session(parser)
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("-p", "--prompt", help="message to answer, or text to continue")
    prompt.add_argument("-f", "--file", help="file with the message; -: standard input")
    _arguments.add_prompt_form(parser)
    parser.add_argument("-o", "--output", help="HTML file to write (default: text on stdout)")
    parser.add_argument(
        "-n", "--n-predict", type=whole(0, words=UNTIL_FULL), default=128,
        help="maximum number of tokens; -1: until the context is full (default: 128)",
    )  # fmt: skip
    _arguments.add_sampling(parser)
    parser.set_defaults(run=run)
