"""Requests for answers to a conversation."""

from __future__ import annotations

from specllama.dialogue.answer_reader import AnswerReader
from specllama.dialogue.conversation import Conversation
from specllama.requests.background import BackgroundRequests
from specllama.server.body.fields import Fields
from specllama.server.endpoint import Endpoint
from specllama.server.settings import Settings


class ConversationEndpoint(Endpoint):
    """A request for answers to a conversation.

    Args:
        conversation: The conversation, read from the fields. None: the request has none, and its
            prompts are continued as text.
    """

    def __init__(
        self,
        model: BackgroundRequests,
        fields: Fields,
        settings: Settings,
        conversation: Conversation | None,
    ) -> None:
        self._conversation = conversation
        super().__init__(model, fields, settings)
        if conversation is not None:
            self._options = conversation.constrained(self._options)
            self._warn(conversation.warnings)

    def _read_prompts(self, fields: Fields) -> list[list[int]]:
        return [] if self._conversation is None else [self._conversation.prompt()]

    def _reader(self) -> AnswerReader:
        """Return a reader for one answer."""
        if self._conversation is None:
            return AnswerReader(None, None, {})
        return self._conversation.reader(self._options)
