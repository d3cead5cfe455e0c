"""The form in which a chat template accepts tools, calls and results."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specllama.model.chat_template import Message

_SHORT = re.compile("[a-zA-Z0-9]{9}")


@dataclass(frozen=True)
class Manner:
    """The form in which a chat template accepts tools, calls and results.

    Attributes:
        texts: Whether arguments are JSON texts, not objects.
        empty: The content of a message that has only calls.
        short_ids: Whether ids are 9 letters and digits, as Mistral's templates require.
        tools: The template's argument for the tools. "functions" is a JSON text.
        written: Types of values that are passed as JSON texts, because the template would write
            them in Python's form.
    """

    texts: bool = False
    empty: str | None = ""
    short_ids: bool = False
    tools: str = "tools"
    written: frozenset[str] = frozenset()

    def template_args(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return further arguments of the chat template."""
        if not tools:
            return {}
        if self.tools == "functions":
            return {"functions": _json([tool["function"] for tool in tools]), "datetime": "now"}
        return {self.tools: list(tools)}

    def conversation(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages in the form that the template accepts."""
        return [self._message(one) for one in messages]

    def _message(self, message: Message) -> Message:
        changed: dict[str, Any] = dict(message)
        if self.short_ids and "tool_call_id" in changed:
            changed["tool_call_id"] = _short(str(changed["tool_call_id"]))
        if changed.get("tool_calls"):
            changed["content"] = changed.get("content") or self.empty
            changed["tool_calls"] = [self._call(one) for one in changed["tool_calls"]]
        return changed

    def _call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        changed, function = dict(call), dict(call["function"])
        if self.short_ids:
            changed["id"] = _short(str(call["id"]))
        arguments = function["arguments"]
        if isinstance(arguments, Mapping):
            arguments = {key: self._value(one) for key, one in arguments.items()}
            function["arguments"] = _json(arguments) if self.texts else arguments
        return {**changed, "function": function}

    def _value(self, value: Any) -> Any:
        return _json(value) if kind_of(value) in self.written else value


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    kinds = ((str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"),
             (Mapping, "object"))  # fmt: skip
    return next((kind for one, kind in kinds if isinstance(value, one)), "array")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(call_id: str) -> str:
    if _SHORT.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:9]
