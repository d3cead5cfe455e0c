"""Reads the conversation of a request."""

from __future__ import annotations

from typing import Any

from specllama.dialogue.conversation import Conversation
from specllama.model.loaded_model import LoadedModel
from specllama.server.body.fields import Fields
from specllama.server.body.messages import read_messages
from specllama.server.media.request_media import RequestMedia
from specllama.server.tools.read_choice import read_choice


def read_template_args(fields: Fields, effort: str) -> dict[str, Any]:
    """Return the chat template's arguments: the field `chat_template_kwargs`, and the effort of
    thinking. effort: "" if the request does not give it. Raises ApiError."""
    wanted = {"enable_thinking": False} if effort == "none" else {"reasoning_effort": effort}
    return {**(wanted if effort else {}), **fields.object("chat_template_kwargs").given}


def read_chat(model: LoadedModel, fields: Fields) -> Conversation:
    """Read the conversation of a chat completion. Raises ApiError."""
    template_args = read_template_args(fields, fields.text("reasoning_effort"))
    reasoning_format = fields.text("reasoning_format", "auto")  # as in llama-server
    if reasoning_format not in ("auto", "deepseek", "none"):
        fields.refuse("reasoning_format", '"auto", "deepseek" or "none"')
    media = RequestMedia(model, fields)
    messages = read_messages(fields, media)
    return Conversation(
        model, messages, read_choice(fields), template_args,
        separates_thoughts=reasoning_format != "none", media=media.taken(),
    )  # fmt: skip
