"""Renders conversations with known texts, to find out how a chat template writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specllama.dialogue.tools.manner import Manner
from specllama.errors import SpecllamaError
from specllama.model.chat_template import ChatTemplate, Message

ASKED, CONTENT, RESULT, FINAL = "Pquestionq", "Pcontentq", "Presultq", "Pfinalq"
NAMES = ("Pfirst_toolq", "Psecond_toolq")
KEYS = ("paramone", "paramtwo")
_IDS = ("call_identity_0001", "call_identity_0002")
_SHORT_IDS = ("identity1", "identity2")
VALUES: Mapping[str, Any] = {
    "string": "Pvalueq", "integer": 73421, "number": 734.5, "boolean": True, "null": None,
    "object": {"inner": "Pdeepq"}, "array": [73421, "Pdeepq"],
}  # fmt: skip
OTHER = "Potherq"
_LAST = "Plastq"


class Probe:
    """Renders conversations by a chat template.

    Args:
        template: The template.
        manner: The form in which it takes calls.
    """

    def __init__(self, template: ChatTemplate, manner: Manner) -> None:
        self._template = template
        self.manner = manner
        self.ids = _SHORT_IDS if manner.short_ids else _IDS
        self._tools = [_tool(name) for name in NAMES]

    @property
    def eos(self) -> str:
        """The text of the token that ends a turn; "" if there is none."""
        return self._template.eos

    def describes(self) -> bool:
        """Whether the template describes tools to the model."""
        text = self._render([{"role": "user", "content": ASKED}])
        return text is not None and all(name in text for name in (*NAMES, *KEYS))

    def called(self, *arguments: Mapping[str, Any], content: str = "") -> str | None:
        """Return the text that the template writes between a question and the result of the first
        call; None if it does not write calls.

        Args:
            arguments: The arguments of each call.
            content: The text that the assistant writes before the calls.
        """
        calls = [
            {
                "id": self.ids[i],
                "type": "function",
                "function": {"name": NAMES[i], "arguments": one},
            }
            for i, one in enumerate(arguments)
        ]
        message = {"role": "assistant", "content": content, "tool_calls": calls}
        results = [
            {"role": "tool", "tool_call_id": call["id"], "name": NAMES[i], "content": RESULT}
            for i, call in enumerate(calls)
        ]
        return self._after(ASKED, [message, *results], RESULT)

    def said(self) -> tuple[str, str] | None:
        """Return the texts that the template writes before and after an answer's content."""
        message = {"role": "assistant", "content": FINAL}
        found = self._after(ASKED, [message, {"role": "user", "content": _LAST}], _LAST)
        if found is None or FINAL not in found:
            return None
        before, _, after = found.partition(FINAL)
        return before, after

    def begun(self) -> str:
        """Return the text that the template writes before the assistant's next answer."""
        text = self._render([{"role": "user", "content": ASKED}]) or ""
        return text.rpartition(ASKED)[2]

    def _after(self, begin: str, messages: list[dict[str, Any]], end: str) -> str | None:
        text = self._render([{"role": "user", "content": begin}, *messages])
        if text is None or begin not in text:
            return None
        found, ended, _ = text.rpartition(begin)[2].partition(end)
        return found if ended else None

    def _render(self, messages: Sequence[Message]) -> str | None:
        try:
            given = self.manner.conversation(messages), self.manner.template_args(self._tools)
            return str.__str__(self._template.render(*given))
        except SpecllamaError:
            return None


def _tool(name: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": "a text"} for key in KEYS}
    parameters = {"type": "object", "properties": properties, "required": list(KEYS)}
    return {
        "type": "function",
        "function": {"name": name, "description": "a tool", "parameters": parameters},
    }
