"""A conversation with a model, as it goes on at a terminal or in a pipe."""

from __future__ import annotations

import sys
from contextlib import nullcontext

from specllama._color import DIM, GREEN, painted
from specllama._core import Stats
from specllama._interrupt import Interrupt
from specllama.chat import files
from specllama.chat.conversation import Conversation
from specllama.chat.open_model import OpenModel
from specllama.requests.options import GenerateOptions

_PATIENCE = 1.0
"""Seconds that an answer has to end after Ctrl-C; then another one leaves it where it is."""


class Chat:
    """Answers on stdout; on stderr stands what else is to be said.

    Args:
        model: Who answers; it is not closed.
        system: The system message, if any.
        options: Of every answer.
        interactive: Whether Ctrl-C ends an answer and not the program.
        colored: Whether accepted drafts are green, and the figures behind answers dim.

    Attributes:
        model: The same.
        conversation: What was said.
        interactive: The same.
        colored: The same; it may be changed.
        ended: Whether it is over; to be set.
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

    def ask(self, text: str) -> None:
        """Say something, with the files that wait for it, and show the answer. A message that is
        not answered with a word is taken back, whatever the reason.

        Raises:
            ArgumentError: The message does not fit.
            DecodeError: llama.cpp failed; what was said until then stands.
        """
        self.conversation.ask("\n".join([*self._files, text]))
        try:
            self._answer()
        finally:
            if self.conversation.take_back("user") is None:
                self._files.clear()

    def ask_again(self) -> bool:
        """Have the last message answered anew; False: there is none. Where no word comes all is as
        before. Raises as `ask`."""
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
        """Put a file, or those that fit a pattern, before the next message, and return their paths.
        Raises ArgumentError where one cannot be read; then none is."""
        paths = files.found(name)
        for text in [files.quoted(path) for path in paths]:
            self.put_before(text)
        return paths

    def put_before(self, text: str) -> None:
        """Put a text before the next message, as it is."""
        self._files.append(text)

    def clear(self) -> None:
        """Forget what was said, and the files that wait."""
        self.conversation.clear()
        self._files.clear()

    def say(self, text: str) -> None:
        """Say something that is no part of the conversation."""
        print(text, file=sys.stderr)

    def _answer(self) -> None:
        """Add the answer to the conversation, if a word of it comes."""
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
        self.say(painted(_brief(result.stats), DIM, self.colored))


def _brief(stats: Stats) -> str:
    return (
        f"[{stats.generated_tokens} tokens, {stats.tokens_per_second:.1f} tokens/s, "
        f"{stats.tokens_per_round:.2f} per round, {stats.reused_tokens} of "
        f"{stats.prompt_tokens} prompt tokens reused]"
    )
