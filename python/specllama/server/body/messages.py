"""Reads the messages of a conversation from the fields of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specllama import _check
from specllama.model.chat_template import Message
from specllama.requests.json_text import parsed, with_whole_characters
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_OBJECTS, check_number
from specllama.server.error import ApiError
from specllama.server.media.request_media import RequestMedia

_ROLES = ("system", "developer", "user", "assistant", "tool")
"""Templates silently ignore messages of other roles."""


def read_messages(fields: Fields, media: RequestMedia) -> list[Message]:
    """Return the messages of a request in the format of chat templates: contents as texts, and
    arguments of calls as objects. Raises ApiError."""
    fields.required("messages")
    return [_message(one, media) for one in objects(fields, "messages", "messages")]


def content_text(fields: Fields, name: str = "content", media: RequestMedia | None = None) -> str:
    """Return a field that is a text or a list of parts, as one text. Raises ApiError, and
    ArgumentError if it cannot be encoded as UTF-8.

    Args:
        fields: The object that has the field.
        name: The field's name.
        media: Reads parts that are images and sounds; None: such parts are refused.
    """
    content = fields.any(name)
    if isinstance(content, list):
        parts = [_part_text(fields, f"{name}[{i}]", part, media) for i, part in enumerate(content)]
        text = "\n".join(parts) if media is None else media.joined(parts)
    else:
        text = fields.text(name)
    return _check.text(fields.full_name(name), text)


def result_text(fields: Fields, name: str, media: RequestMedia) -> str:
    """Return a tool's result as text, like `content_text`. A note replaces images that the model
    cannot see, files and the like: they should not end the conversation."""
    content = fields.any(name)
    if not isinstance(content, list):
        return content_text(fields, name)
    parts = []
    for i, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) and "text" not in part else None
        if isinstance(kind, str) and not media.takes(kind):
            parts.append(left_out(kind))
        else:
            parts.append(_part_text(fields, f"{name}[{i}]", part, media))
    return media.joined(parts)


def left_out(kind: str) -> str:
    """Return the note that replaces a part of a tool's result."""
    return f"[{kind.removeprefix('input_').removesuffix('_url')}: not supported]"


def objects(fields: Fields, name: str, what: str) -> list[Fields]:
    """Return a field that is a list of objects. Raises ApiError.

    Args:
        fields: The object that has the field.
        name: The field's name.
        what: The name of the objects in error messages.
    """
    given = fields.any(name)
    if not isinstance(given, list):
        fields.refuse(name, f"a list of {what}")
    check_number(fields.full_name(name), len(given), MOST_OBJECTS, what)
    for i, one in enumerate(given):
        if not isinstance(one, dict):
            field = fields.full_name(f"{name}[{i}]")
            raise ApiError(400, f"{field} must be an object, one of the {what}.", param=field)
    return [Fields(one, fields.full_name(f"{name}[{i}]")) for i, one in enumerate(given)]


def call_message(call_id: str, name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return a call as an entry of a message's `tool_calls`."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def read_arguments(fields: Fields) -> dict[str, Any] | str:
    """Return the field `arguments` as an object. It is a JSON object or, in OpenAI's API, the text
    of one. Null and an empty list mean no arguments. A text that is not a JSON object, for example
    because the call was cut, is returned as it is: templates accept it too, and the conversation
    can continue."""
    given = fields.any("arguments")
    if isinstance(given, dict):
        return given
    text = given or "{}"
    if not isinstance(text, str):
        fields.refuse("arguments", "a JSON object, or its text")
    try:
        arguments = with_whole_characters(parsed(text)) or {}
    except json.JSONDecodeError:
        return text
    except ValueError as error:
        field = fields.full_name("arguments")
        raise ApiError(400, f"{field} is not JSON: {error!s:.200}.", param=field) from None
    return arguments if isinstance(arguments, dict) else text


def _part_text(fields: Fields, name: str, part: Any, media: RequestMedia | None) -> str:
    field = fields.full_name(name)
    if isinstance(part, dict):
        if media is not None and (placeholder := media.part(Fields(part, field))) is not None:
            return placeholder
        text = part.get("refusal" if part.get("type") == "refusal" else "text")
        if isinstance(text, str):
            return text
    raise ApiError(
        400, f"{field} must have a text; files and the like are not supported.", param=field
    )


def _message(fields: Fields, media: RequestMedia) -> Message:
    fields.refuse_unsupported("function_call")
    fields.required("role")
    role = fields.text("role")
    if role not in _ROLES:
        fields.refuse("role", '"system", "developer", "user", "assistant" or "tool"')
    read = result_text if role == "tool" else content_text
    message: dict[str, Any] = {**fields.given, "content": read(fields, "content", media)}
    if role == "developer":
        message["role"] = "system"  # templates have only this role
    if role == "tool":
        fields.required("tool_call_id")
        message["tool_call_id"] = fields.text("tool_call_id")
    if "tool_calls" in fields:
        message["tool_calls"] = _calls(fields)
        if not message["tool_calls"]:
            del message["tool_calls"]
    return message


def _calls(fields: Fields) -> list[dict[str, Any]]:
    return [_call(one) for one in objects(fields, "tool_calls", "calls")]


def _call(fields: Fields) -> dict[str, Any]:
    if fields.text("type", "function") != "function":
        fields.refuse("type", '"function"')
    fields.required("id")
    fields.required("function")
    function = fields.object("function")
    function.required("name")
    return call_message(fields.text("id"), function.text("name"), read_arguments(function))
