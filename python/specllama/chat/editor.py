"""Reads input at a terminal with prompt_toolkit: several lines, a history, completion."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

from specllama.chat.typed import CONTINUES, is_open


class Editor:
    """Reads messages and commands, which may have several lines. It draws on stderr, because stdout
    is for answers.

    Args:
        history: The file for the history of inputs; None: it is kept in memory.
        commands: Names of commands, and whether a path may follow each, for completion.
    """

    def __init__(self, history: Path | None, commands: Mapping[str, bool]) -> None:
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            placeholder="Ask, or /help",
            history=_kept(history),
            completer=_CommandCompleter(commands),
            complete_while_typing=False,
            enable_open_in_editor=True,
            enable_suspend=True,
            key_bindings=_keys(),
            output=create_output(stdout=sys.stderr),
        )

    def read(self) -> str:
        """Return the next message or command.

        Raises:
            EOFError: Ctrl-D was pressed on an empty line.
            KeyboardInterrupt: Ctrl-C was pressed on an empty line; on any other it clears the line.
        """
        return self._session.prompt()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.text_before_cursor
        if buffer.document.is_cursor_at_the_end and before.endswith(CONTINUES):
            buffer.delete_before_cursor(len(CONTINUES))
            buffer.insert_text("\n")
        elif is_open(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


class _CommandCompleter(Completer):
    """Completes names of commands, and paths after commands that take one."""

    def __init__(self, commands: Mapping[str, bool]) -> None:
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        name, space, rest = document.text_before_cursor.partition(" ")
        if space and self._commands.get(name, False):
            return self._paths.get_completions(Document(rest), complete_event)
        fitting = [one for one in self._commands if not space and one.startswith(name or "/")]
        return [Completion(one, start_position=-len(name)) for one in fitting if name]


_LONGEST_HISTORY = 10_000_000
"""Maximum number of bytes of a history file; a longer one is not used."""


class _LenientHistory(FileHistory):
    """A history file that only its owner may read. A text that cannot be written to it is kept in
    memory."""

    def store_string(self, string: str) -> None:
        with suppress(OSError, UnicodeEncodeError):
            super().store_string(string)


def _kept(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        status = os.fstat(file)
        os.close(file)
    except OSError:
        return InMemoryHistory()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LONGEST_HISTORY:
        return InMemoryHistory()
    return _LenientHistory(str(path))
