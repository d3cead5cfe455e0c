"""The loop of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specllama.chat import typed
from specllama.chat.chat import Chat
from specllama.chat.commands import execute
from specllama.errors import ArgumentError, SpecllamaError


class Reader(Protocol):
    """Reads input: `Lines` or `Editor`."""

    def read(self) -> str:
        """Return the next message or command.

        Raises:
            EOFError: The input has ended.
            KeyboardInterrupt: Ctrl-C was pressed.
        """


def converse(chat: Chat, reader: Reader, worded: Callable[[str], str]) -> None:
    """Answer messages until the input ends. An interactive chat prints errors, with their messages
    changed by `worded`, and ends at the second Ctrl-C in a row. Otherwise errors and Ctrl-C are
    raised."""
    leaving = False
    while not chat.ended:
        try:
            text = reader.read()
            leaving = False
            _respond(chat, text)
        except EOFError:
            return
        except KeyboardInterrupt:
            if not chat.interactive:
                raise
            if leaving:
                return
            leaving = True
            chat.say("Press Ctrl-C again, or Ctrl-D, to end the conversation.")
        except SpecllamaError as error:
            if not chat.interactive:
                raise
            chat.say(f"specllama: {worded(str(error))}")


def _respond(chat: Chat, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError("The message is not UTF-8.") from None
    if typed.is_command(text):
        execute(chat, text)
    elif message := typed.message(text):
        chat.ask(message)
