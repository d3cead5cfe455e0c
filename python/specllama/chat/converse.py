"""The conversation's loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specllama.chat import typed
from specllama.chat.chat import Chat
from specllama.chat.commands import execute
from specllama.errors import ArgumentError, SpecllamaError


class Reader(Protocol):
    """Who reads what is typed: `Lines` or `Editor`."""

    def read(self) -> str:
        """Return the next message, or command.

        Raises:
            EOFError: There is none.
            KeyboardInterrupt: Ctrl-C.
        """


def converse(chat: Chat, reader: Reader, worded: Callable[[str], str]) -> None:
    """Answer what is read until it ends. In an interactive chat errors are told, in the words that
    `worded` makes of theirs, and Ctrl-C ends it when it comes twice; else both are raised."""
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
            chat.say("Ctrl-C again, or Ctrl-D, ends the conversation.")
        except SpecllamaError as error:
            if not chat.interactive:
                raise
            chat.say(f"specllama: {worded(str(error))}")


def _respond(chat: Chat, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError("What was typed is not UTF-8.") from None
    if typed.is_command(text):
        execute(chat, text)
    elif message := typed.message(text):
        chat.ask(message)
