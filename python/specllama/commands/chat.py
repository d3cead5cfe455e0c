"""`specllama chat`: chat with a model in the terminal. /help lists its commands."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from importlib.util import find_spec

from specllama import _core, _files
from specllama._color import has_colors
from specllama.chat import files
from specllama.chat.chat import Chat
from specllama.chat.commands import completions
from specllama.chat.converse import Reader, converse
from specllama.chat.lines import Lines
from specllama.chat.open_model import OpenModel
from specllama.commands import _arguments
from specllama.commands.whole_numbers import UNTIL_FULL, whole
from specllama.errors import ArgumentError

_STDIN = "-"
_HISTORY = "chat-history"
_COLOR = {"auto": None, "on": True, "off": False}


def run(arguments: argparse.Namespace) -> int:
    """Converse until the input ends, or answer one message; return the exit code."""
    once = arguments.prompt is not None
    piped = next((name for name in arguments.file if name in _files.STANDARD_INPUT), None)
    if sys.stdin is None and (not once or piped):
        raise ArgumentError("Standard input is closed; nothing can be read from it.")
    options = _arguments.session_options(arguments)
    options |= _arguments.target_options(arguments) | _arguments.template_options(arguments)
    sampling = _arguments.generate_options(arguments)
    sampling["max_tokens"] = arguments.n_predict
    if once and not (arguments.prompt or arguments.file or arguments.media):
        raise ArgumentError("The prompt is empty; give at least one character.")
    if piped and not once:
        raise ArgumentError(
            f"-f {piped} reads standard input, from which messages are read; give the message with "
            "-p."
        )
    before = [text for name in arguments.file for text in _quoted(name)]
    if once and not piped and _files.input_is_piped():
        print("Standard input is not read; give -f - to read it.", file=sys.stderr)
    wish = _COLOR[arguments.color]
    with OpenModel(options) as model:
        chat = Chat(
            model,
            arguments.system,
            sampling,
            interactive=not once and sys.stdin.isatty(),
            colored=has_colors(sys.stdout) if wish is None else wish,
        )
        # Report bad options before the first question.
        model.session.stream([0], **sampling).close()
        for text in before:
            chat.put_before(text)
        for name in arguments.media:
            chat.attach_medium(name)
        if once:
            chat.ask(arguments.prompt)
            return 0
        reader = _reader(chat)
        if chat.interactive:
            hint = "" if _has_editor() else " (For an editor: pip install 'specllama[chat]'.)"
            chat.say(f"{model.session.model_description}. /help lists the commands.{hint}")
        converse(chat, reader, partial(_arguments.with_flags, parser=arguments.parser))
    return 0


def _reader(chat: Chat) -> Reader:
    if not (chat.interactive and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"):
        return Lines(prompts=chat.interactive)
    if not _has_editor():
        return Lines(prompts=True)
    from specllama.chat.editor import Editor

    folder = _core.cache_folder()
    return Editor(folder and folder / _HISTORY, completions())


def _quoted(name: str) -> list[str]:
    """Return the files of a name or pattern, or standard input, in the form for a message."""
    if name == _STDIN:
        return [files.fenced("Standard input", _files.read_prompt(_STDIN))]
    return [files.quoted(path) for path in files.found(name)]


def _has_editor() -> bool:
    return find_spec("prompt_toolkit") is not None


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `chat` to the command line."""
    parser = commands.add_parser(
        "chat", help="chat with a model in the terminal", description=__doc__
    )
    _arguments.add_session(parser, help="chat model, a GGUF file")
    _arguments.add_target_url(parser)
    _arguments.add_chat_template(parser)
    parser.add_argument(
        "-p", "--prompt", type=_arguments.text, metavar="TEXT", help="answer this message and exit"
    )
    parser.add_argument(
        "-f", "--file", action="append", default=[],
        help="put this file before the first message; a pattern ('*.py'): all that match; - (with "
        "-p): standard input; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--image", "--audio", action="append", default=[], dest="media", metavar="FILE",
        help="put this image or sound before the first message, for a vision or audio model "
        "(--mmproj); a pattern: all that match; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "-sys", "--system", "--system-prompt", type=_arguments.text, help="system message"
    )
    parser.add_argument(
        "-n",
        "--n-predict",
        type=whole(0, words=UNTIL_FULL),
        help="maximum number of tokens per answer (default: until the context is full)",
    )
    parser.add_argument(
        "--color", choices=_COLOR, default="auto",
        help="colour accepted drafts green (default: auto, in a terminal)",
    )  # fmt: skip
    _arguments.add_sampling(parser)
    parser.set_defaults(run=run, chats=True)
