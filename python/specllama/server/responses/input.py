"""Reads the items of a conversation from the fields of a request."""

from __future__ import annotations

from typing import Any

from specllama.model.chat_template import Message
from specllama.server.body.fields import Fields
from specllama.server.body.limits import MOST_OBJECTS, check_number
from specllama.server.body.messages import call_message, content_text, read_arguments, result_text
from specllama.server.error import ApiError, leave_out
from specllama.server.media.request_media import RequestMedia

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
"""The API's roles, mapped to those of chat templates."""


def read_input(fields: Fields, media: RequestMedia) -> list[Message]:
    """Return `instructions` and `input` of a request as messages. Raises ApiError."""
    fields.required("input")
    given = fields.any("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        fields.refuse("input", "a text or a list of items")
    check_number("input", len(given), MOST_OBJECTS, "items")
    messages: list[dict[str, Any]] = []
    if instructions := content_text(fields, "instructions"):
        messages.append({"role": "system", "content": instructions})
    for i, item in enumerate(given):
        _add(messages, Fields(item, f"input[{i}]"), media)
    _drop_thought(messages)
    if not messages:
        raise ApiError(400, "input is empty; give at least one message.", param="input")
    return list(messages)


def _add(messages: list[dict[str, Any]], item: Fields, media: RequestMedia) -> None:
    kind = item.text("type", "message")
    if kind == "message":
        role = item.text("role")
        if role not in _ROLES:
            item.required("role")
            item.refuse("role", '"user", "assistant", "system" or "developer"')
        _say(messages, _ROLES[role], content_text(item, media=media))
    elif kind == "function_call":
        item.required("call_id")
        item.required("name")
        # The calls of one answer and the text before them become one message.
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
        messages[-1].setdefault("tool_calls", []).append(
            call_message(item.text("call_id"), item.text("name"), read_arguments(item))
        )
    elif kind == "function_call_output":
        item.required("call_id")
        item.required("output")
        _drop_thought(messages)
        output = result_text(item, "output", media)
        messages.append({"role": "tool", "tool_call_id": item.text("call_id"), "content": output})
    elif kind == "reasoning":  # some templates include it between calls
        if thought := content_text(item) or content_text(item, "summary"):
            _think(messages, thought)
    elif kind.endswith(("_call", "_call_output")) or kind.startswith("mcp_"):
        leave_out(f"items of type {kind!r:.40}")  # their tools are ignored, too
    else:
        item.refuse("type", '"message", "function_call" or "function_call_output"')


def _think(messages: list[dict[str, Any]], thought: str) -> None:
    """Add a thought to the assistant's last message, or to a new one for its next text."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    before = messages[-1].get("reasoning_content")
    messages[-1]["reasoning_content"] = f"{before}\n{thought}" if before else thought


def _say(messages: list[dict[str, Any]], role: str, content: str) -> None:
    """Add a message. A thought before it becomes part of an assistant's message, else it is
    dropped."""
    thought = _drop_thought(messages)
    before = thought if role == "assistant" else {}
    messages.append({**before, "role": role, "content": content})


def _drop_thought(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Remove the last message and return it, if it is only a thought; else return {}."""
    last = messages[-1] if messages else {}
    if "reasoning_content" not in last or last["content"] or last.get("tool_calls"):
        return {}
    return messages.pop()
