"""Formats of tool calls, and descriptions of tools in prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from specllama.dialogue.tools.manner import Manner
from specllama.dialogue.tools.shape import Shape
from specllama.dialogue.tools.tool import Tool
from specllama.model.chat_template import Message
from specllama.model.marks import NAME

_DESCRIPTION = (
    "You can call these tools; each is described by a line of JSON:\n{tools}\n"
    "To call one, write its name and arguments like this:\n{example}"
)
_EXAMPLE = {"name": "the_name", "arguments": {"an_argument": "its value"}}


@dataclass(frozen=True)
class CallFormat:
    """The format in which a model writes calls, and in which its prompt describes tools.

    Attributes:
        shapes: Shapes of calls; the first is the one on which the model was trained.
        source: "template": the chat template writes calls in this format; "model": the model is
            known here; "fallback": neither, and the prompt asks the model to use this format.
        parallel: Whether an answer may have several calls.
        manner: The form in which the template accepts tools and calls.
        describes: Whether the template describes tools to the model.
        writes: Whether the template writes calls.
        role: The role of the message that describes tools if the template does not: "system", or
            "user" if the template does not accept system messages.
    """

    shapes: tuple[Shape, ...]
    source: Literal["template", "model", "fallback"] = "template"
    parallel: bool = True
    manner: Manner = field(default_factory=Manner)
    describes: bool = True
    writes: bool = True
    role: str = "system"

    def openings(self, tools: Sequence[Tool]) -> list[str]:
        """Return the texts with which a call may begin."""
        names = [tool.name for tool in tools]
        found = (one for shape in self.shapes for one in shape.openings(names))
        return list(dict.fromkeys(found))

    @property
    def marks(self) -> list[str]:
        """All fixed texts of the format."""
        return [mark for shape in self.shapes for mark in shape.marks]

    @property
    def example(self) -> str:
        """A call as the model writes it."""
        return self.shapes[0].written([{"id": "identity1", "function": _EXAMPLE}])

    def template_args(self, tools: Sequence[Tool]) -> dict[str, Any]:
        """Return further arguments of the model's chat template."""
        return self.manner.template_args([tool.given for tool in tools]) if self.describes else {}

    def conversation(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
        """Return the messages in the form that the model's chat template accepts."""
        changed = self.manner.conversation(messages) if self.writes else self._texts(messages)
        if tools and not self.describes:
            self._describe(tools, changed)
        return changed

    def _texts(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with calls and results as texts."""
        plain: list[Message] = []
        for message in messages:
            one = self._text(message)
            # Some templates require that user and assistant alternate.
            if plain and message["role"] == "tool" and plain[-1]["role"] == "user" == one["role"]:
                both = f"{plain[-1]['content']}\n{one['content']}"
                plain[-1] = {"role": "user", "content": both}
            else:
                plain.append(one)
        return plain

    def _text(self, message: Message) -> Message:
        content = message.get("content") or ""
        if message["role"] == "tool":
            if self.source != "fallback":
                return message
            response = f"<tool_response>\n{content}\n</tool_response>"
            return {"role": "user", "content": response}
        changed = {key: one for key, one in message.items() if key != "tool_calls"}
        if calls := message.get("tool_calls"):
            written = self.shapes[0].written(calls)
            return {**changed, "content": f"{content}\n{written}" if content else written}
        return {**changed, "content": content}

    def _describe(self, tools: Sequence[Tool], messages: list[Message]) -> None:
        lines = "\n".join(json.dumps(tool.given["function"], ensure_ascii=False) for tool in tools)
        text = _DESCRIPTION.format(tools=lines, example=self.example)
        if messages and messages[0]["role"] == self.role:
            first = (str(messages[0].get("content") or ""), text)
            joined = "\n\n".join(first if self.role == "system" else first[::-1])
            messages[0] = {**messages[0], "content": joined}
        else:
            messages.insert(0, {"role": self.role, "content": text})


def json_shape(begin: str, key: str, end: str, **more: Any) -> Shape:
    """Return the shape of {"name": ..., key: ...}.

    Args:
        begin: The text before it.
        key: The key of the arguments.
        end: The text after it.
        more: Further attributes of the shape.
    """
    return Shape(f'{begin}{{"name": "{NAME}", "{key}": ', f"}}{end}", **more)
