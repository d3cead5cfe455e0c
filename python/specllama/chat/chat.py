"""A conversation with a model, at a terminal or through a pipe."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from specllama._color import DIM, GREEN, painted
from specllama._core import Stats
from specllama._interrupt import Interrupt
from specllama.chat import files
from specllama.chat.conversation import Conversation
from specllama.chat.open_model import OpenModel
from specllama.errors import ArgumentError
from specllama.requests.options import GenerateOptions

_PATIENCE = 1.0
"""Seconds for an answer to end after Ctrl-C. A later Ctrl-C raises KeyboardInterrupt."""


class Chat:
    """Prints answers on stdout, and everything else on stderr.

    Args:
        model: The model that answers; it is not closed here.
        system: The system message, if any.
        options: Options of every answer.
        interactive: Whether Ctrl-C ends only the answer, not the program.
        colored: Colour accepted drafts green, and show the figures after answers dimmed.

    Attributes:
        model: As given.
        conversation: The messages so far.
        interactive: As given.
        colored: As given; may be changed.
        ended: Whether the conversation is over; may be set.
        past: The statistics of all answers, in order.
    """

    def __init__(
        self,
        model: OpenModel,
        system: str | None,
        options: GenerateOptions,
        *,
        interactive: bool,
        colored: bool,
    ) -> None:
        self.model = model
        self.conversation = Conversation(system)
        self.interactive = interactive
        self.colored = colored
        self.ended = False
        self.past: list[Stats] = []
        self._options = options
        self._files: list[str] = []
        self._media: list[dict[str, Any]] = []  # parts of the next message

    def ask(self, text: str) -> None:
        """Send a message, with the attached files and media before it, and show the answer. If the
        answer is interrupted before its first word, the message is removed from the conversation,
        and its files stay attached for the next one. If the message is refused, its files are
        dropped.

        Raises:
            ArgumentError: The message is refused, e.g. because it does not fit into the context.
            DecodeError: llama.cpp failed; the answer so far is kept.
        """
        self.conversation.ask("\n".join([*self._files, text]), self._media)
        try:
            self._answer()
        except ArgumentError:  # with the same files, the next message would be refused, too
            if (self._files or self._media) and self.interactive:
                self.say("The message is refused, and its files are dropped.")
            self._drop_files()
            raise
        finally:
            if self.conversation.take_back("user") is None:
                self._drop_files()

    def ask_again(self) -> bool:
        """Answer the last message again; False if there is none. If the answer is interrupted
        before its first word, nothing changes. Raises the errors of `ask`."""
        before = self.conversation.take_back("assistant")
        asked = self.conversation.asks
        try:
            if asked:
                self._answer()
        finally:
            if before is not None and (self.conversation.asks or not asked):
                self.conversation.answer(before)
        return asked

    def attach(self, name: str) -> list[str]:
        """Attach a file, or all files that match a pattern, to the next message, and return their
        paths. Raises ArgumentError if one cannot be read; then none is attached."""
        paths = files.found(name)
        for text in [files.quoted(path) for path in paths]:
            self.put_before(text)
        return paths

    def attach_medium(self, name: str) -> list[str]:
        """Attach the file of an image or a sound, or all files that match a pattern, to the next
        message, and return their paths. Raises ArgumentError if the model does not accept them, or
        one cannot be used; then none is attached."""
        paths = files.found(name)
        reader = self.model.session.media_reader()
        self._media += [files.medium(path, reader) for path in paths]
        return paths

    def put_before(self, text: str) -> None:
        """Put a text before the next message, unchanged."""
        self._files.append(text)

    def clear(self) -> None:
        """Forget the messages and the attached files."""
        self.conversation.clear()
        self._drop_files()

    def _drop_files(self) -> None:
        self._files.clear()
        self._media.clear()

    def say(self, text: str) -> None:
        """Print a text that is not part of the conversation."""
        print(text, file=sys.stderr)

    def _answer(self) -> None:
        """Show the answer, and add it to the conversation unless it was interrupted before its
        first word."""
        stream = self.model.session.stream_chat(self.conversation.messages, **self._options)
        with Interrupt(stream.cancel, patience=_PATIENCE) if self.interactive else nullcontext():
            try:
                with stream:
                    for chunk in stream:
                        green = self.colored and chunk.from_draft
                        print(painted(chunk.text, GREEN, green), end="", flush=True)
            finally:
                result = stream.result()
                self.past.append(result.stats)
                if result.text or result.finish_reason:
                    self.conversation.answer(result.text)
                print(flush=True)
        if not result.text and result.finish_reason == "stop":
            self.say("The answer is empty: the model ended it at once.")
        self.say(painted(_brief(result.stats), DIM, self.colored))


def _brief(stats: Stats) -> str:
    return (
        f"[{stats.generated_tokens} tokens, {stats.tokens_per_second:.1f} tokens/s, "
        f"{stats.tokens_per_round:.2f} tokens per round, {stats.reused_tokens} of "
        f"{stats.prompt_tokens} prompt tokens reused]"
    )
