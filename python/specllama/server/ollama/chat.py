"""/api/chat: conversations."""

from __future__ import annotations

from typing import Any

from specllama.requests.background import BackgroundRequests
from specllama.server.body.fields import Fields
from specllama.server.ollama.endpoint import OllamaEndpoint
from specllama.server.ollama.fields import translated
from specllama.server.ollama.input import read_conversation
from specllama.server.settings import Settings


class OllamaChat(OllamaEndpoint):
    """A request to /api/chat."""

    prompt_field = "messages"

    def __init__(self, model: BackgroundRequests, fields: Fields, settings: Settings) -> None:
        given = translated(fields)
        super().__init__(model, given, settings, read_conversation(model, given))

    def _said(self, text: str, thought: str, made: list[dict[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thought:
            message["thinking"] = thought
        if made:
            message["tool_calls"] = made
        return {"message": message}
