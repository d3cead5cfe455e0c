"""Reads a conversation from the fields of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specllama.dialogue.conversation import Conversation
from specllama.model.chat_template import Message
from specllama.model.loaded_model import LoadedModel
from specllama.server.body.fields import Fields
from specllama.server.body.messages import call_message, content_text, objects, read_arguments
from specllama.server.media.request_media import RequestMedia
from specllama.server.ollama.fields import template_args
from specllama.server.tools.read_choice import read_choice

_ROLES = ("system", "user", "assistant", "tool")


def read_conversation(model: LoadedModel, fields: Fields) -> Conversation | None:
    """Read the conversation of a request; None if it has no messages and only loads the model.
    Raises ApiError, and the errors of `Conversation`."""
    given = objects(fields, "messages", "messages") if "messages" in fields else []
    if not given:
        return None
    media = RequestMedia(model, fields)
    messages = _messages(given, media)
    return Conversation(
        model, messages, read_choice(fields), template_args(fields), media=media.taken()
    )


def with_images(text: str, fields: Fields, media: RequestMedia) -> str:
    """Return a text, preceded by the placeholders of the field `images`. Raises ApiError."""
    given = fields.any("images") or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        fields.refuse("images", "a list of images in base64")
    name = fields.full_name("images")
    images = [media.encoded(f"{name}[{i}]", one) for i, one in enumerate(given)]
    return media.joined([*images, text]) if images else text


def _messages(given: Sequence[Fields], media: RequestMedia) -> list[Message]:
    """Return messages in the format of chat templates. Calls have no ids in Ollama's API, so they
    get ids here. A result belongs to the first call of its name without a result."""
    messages: list[dict[str, Any]] = []
    open_calls: dict[str, str] = {}  # names of calls without a result, by their ids
    n_calls = 0
    for one in given:
        one.required("role")
        role = one.text("role")
        if role not in _ROLES:
            one.refuse("role", '"system", "user", "assistant" or "tool"')
        content = with_images(content_text(one), one, media)
        message: dict[str, Any] = {"role": role, "content": content}
        if thought := one.text("thinking"):
            message["reasoning_content"] = thought
        if role == "tool":
            message |= _result(one, open_calls)
        elif one.any("tool_calls"):
            message["tool_calls"] = []
            for call in objects(one, "tool_calls", "calls"):
                # Mistral's templates require ids of nine letters and digits.
                made = _call(call, f"call{n_calls:05d}")
                n_calls += 1
                open_calls[made["id"]] = made["function"]["name"]
                message["tool_calls"].append(made)
        messages.append(message)
    return list(messages)


def _call(fields: Fields, default_id: str) -> dict[str, Any]:
    fields.required("function")
    function = fields.object("function")
    function.required("name")
    call_id = fields.text("id") or default_id
    return call_message(call_id, function.text("name"), read_arguments(function))


def _result(fields: Fields, open_calls: dict[str, str]) -> dict[str, Any]:
    """Return the fields that name the call of a result, and remove it from the open calls."""
    name = fields.text("tool_name") or fields.text("name")
    found = fields.text("tool_call_id")
    if not found:
        named = (one for one, of in open_calls.items() if of == name)
        found = next(named, next(iter(open_calls), ""))
    name = open_calls.pop(found, name)
    return {"tool_call_id": found, **({"name": name} if name else {})}
