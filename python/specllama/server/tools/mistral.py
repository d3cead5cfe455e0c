"""Calls as Mistral's models write them, after the token [TOOL_CALLS]."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from specllama.model.chat_template import Message
from specllama.server.tools.format import CallFormat, Written, json_call, json_head
from specllama.server.tools.tool import Tool

_ID, _ID_END = "/[a-zA-Z0-9]{9}/", '"}'


class MistralFormat(CallFormat):
    """A JSON list: [TOOL_CALLS][{"name": ..., "arguments": ..., "id": ...}]."""

    head = json_head("arguments")
    marks: ClassVar[tuple[str, ...]] = ("[TOOL_CALLS]",)

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        return ["[TOOL_CALLS]"]

    def call_rule(self, name: str, arguments: str, text: Written) -> str:
        call = json_call(name, "arguments", arguments, text, ', "id": "')
        return f"{call} {_ID} {text(_ID_END)}"

    def calls_rule(self, parallel: bool, text: Written) -> str:
        calls = f"({text(', ')} call)* " if parallel else ""
        return f'{text("[TOOL_CALLS]")} (" ")? "[" call {calls}"]"'

    def conversation(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
        return [_with_short_ids(message) for message in messages]


class MistralArgsFormat(MistralFormat):
    """The newer format: [TOOL_CALLS]name[ARGS]{...}, perhaps with [CALL_ID]id before [ARGS]."""

    head = re.compile(
        r"\[TOOL_CALLS\](?P<name>[\w.:/-]+)(?:\[CALL_ID\]\w+)?\[ARGS\]\s*(?=\{)", re.ASCII
    )
    marks = ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")

    def call_rule(self, name: str, arguments: str, text: Written) -> str:
        head, call_id, begin = text(f"[TOOL_CALLS]{name}"), text("[CALL_ID]"), text("[ARGS]")
        return f"{head} ({call_id} {_ID})? {begin} {arguments}"

    def calls_rule(self, parallel: bool, text: Written) -> str:
        return "call+" if parallel else "call"


def _with_short_ids(message: Message) -> Message:
    """Return a message with its call ids in the form that the templates require."""
    changed: dict[str, Any] = dict(message)
    if "tool_call_id" in changed:
        changed["tool_call_id"] = _short(str(changed["tool_call_id"]))
    if "tool_calls" in changed:
        calls: Sequence[Mapping[str, Any]] = changed["tool_calls"]
        changed["tool_calls"] = [{**call, "id": _short(call["id"])} for call in calls]
    return changed


def _short(call_id: str) -> str:
    if re.fullmatch("[a-zA-Z0-9]{9}", call_id):
        return call_id
    return hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:9]
