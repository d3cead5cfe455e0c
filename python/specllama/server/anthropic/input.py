"""Reads a conversation from the fields of a request."""

from __future__ import annotations

import re
from typing import Any

from specllama.dialogue.conversation import Conversation
from specllama.dialogue.tools.choice import ToolChoice
from specllama.model.chat_template import Message
from specllama.model.loaded_model import LoadedModel
from specllama.server.body.conversation import read_template_args
from specllama.server.body.fields import Fields
from specllama.server.body.messages import call_message, content_text, left_out, objects
from specllama.server.error import ApiError
from specllama.server.media.request_media import RequestMedia
from specllama.server.tools.read_choice import named_tool
from specllama.server.tools.read_tools import MESSAGES, read_tools

# Claude Code's system prompt begins with this line. The model does not need it, and it differs in
# every request, so no decoded prefix could be reused.
_BILLING = re.compile(r"^x-anthropic-billing-header:.*\n?", re.MULTILINE)


# Ignored blocks of answers. Results of the API owner's tools are ignored, too.
_PASSED_OVER = ("redacted_thinking", "server_tool_use")


def read_conversation(model: LoadedModel, fields: Fields) -> Conversation:
    """Read the conversation of a request. Raises ApiError, and the errors of `Conversation`."""
    template_args = read_template_args(fields, "")
    if "thinking" in fields:
        wanted = fields.object("thinking")
        wanted.required("type")
        template_args.setdefault("enable_thinking", wanted.text("type") != "disabled")
    media = RequestMedia(model, fields)
    messages = _messages(fields, media)
    return Conversation(model, messages, _tool_choice(fields), template_args, media=media.taken())


def _tool_choice(fields: Fields) -> ToolChoice:
    tools = read_tools(fields, MESSAGES)
    choice = fields.object("tool_choice")
    kind = choice.text("type", "auto")
    parallel = not choice.flag("disable_parallel_tool_use")
    if kind == "tool":
        return ToolChoice(tools, [named_tool(tools, choice)], must=True, parallel=False)
    must = kind == "any"
    if kind not in ("auto", "none", "any") or (must and not tools):
        choice.refuse("type", '"auto" or "none", or with tools "any" or "tool"')
    offered = [] if kind == "none" else tools
    return ToolChoice(offered, offered, must=must, parallel=parallel)


def _messages(fields: Fields, media: RequestMedia) -> list[Message]:
    messages: list[dict[str, Any]] = []
    if system := _BILLING.sub("", content_text(fields, "system")):
        messages.append({"role": "system", "content": system})
    fields.required("messages")
    given = objects(fields, "messages", "messages")
    if not given:
        raise ApiError(400, "messages is empty; give at least one message.", param="messages")
    for one in given:
        role = one.text("role")
        if role not in ("user", "assistant", "system"):
            one.required("role")
            one.refuse("role", '"user" or "assistant"')
        if isinstance(one.any("content"), list):
            _add_blocks(messages, role, objects(one, "content", "blocks"), media)
        else:
            messages.append({"role": role, "content": content_text(one)})
    return list(messages)


def _add_blocks(
    messages: list[dict[str, Any]], role: str, blocks: list[Fields], media: RequestMedia
) -> None:
    """Add a message of blocks. Chat templates expect each tool's result as a separate message."""
    message: dict[str, Any] = {"role": role, "content": ""}
    for block in blocks:
        kind = block.text("type", "text")
        if (text := _text(block, kind)) is None and role == "user":
            text = media.part(block)
        if text is not None:
            before = message["content"]
            message["content"] = media.joined([before, text]) if before else text
        elif kind == "tool_result" and role == "user":
            block.required("tool_use_id")
            if message["content"]:
                messages.append(message)
                message = {"role": role, "content": ""}
            result = {"tool_call_id": block.text("tool_use_id"), "content": _result(block, media)}
            messages.append({"role": "tool", **result})
        elif kind == "tool_use" and role == "assistant":
            block.required("id")
            block.required("name")
            block.object("input")
            arguments = block.any("input") or {}  # null values included
            call = call_message(block.text("id"), block.text("name"), arguments)
            message.setdefault("tool_calls", []).append(call)
        elif kind == "thinking" and role == "assistant":
            thought, before = content_text(block, "thinking"), message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n{thought}" if before else thought
        elif role != "assistant" or not (kind in _PASSED_OVER or kind.endswith("_tool_result")):
            block.refuse("type", "text, image, thinking, tool_use or tool_result")
    if len(message) > 2 or message["content"] or not blocks:
        messages.append(message)


def _text(block: Fields, kind: str) -> str | None:
    """Return the text of a block; None if the block is not a text."""
    if kind == "text":
        block.required("text")
        return content_text(block, "text")
    source = block.any("source")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        return content_text(block.object("source"), "data")
    return None


def _result(block: Fields, media: RequestMedia) -> str:
    """Return a tool's result as text. An image that the model cannot see is replaced by a note, so
    that it does not end the conversation."""
    if not isinstance(block.any("content"), list):
        return content_text(block)
    texts = []
    for part in objects(block, "content", "blocks"):
        kind = part.text("type", "text")
        text = _text(part, kind)
        if text is None and media.takes(kind):
            text = media.part(part)
        texts.append(left_out(kind) if text is None else text)
    return media.joined(texts)
