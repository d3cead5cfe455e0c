"""The blocks of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specllama.dialogue.answer_parts import Arguments, CallBegun, Content, Part, Thought
from specllama.requests.json_text import parsed

Event = dict[str, Any]

_TEXTS: Mapping[type[Part], tuple[str, str, Mapping[str, Any]]] = {
    Content: ("text", "text_delta", {}),
    Thought: ("thinking", "thinking_delta", {"signature": ""}),
}
"""For text blocks: the type (also the field's name), the type of deltas, and further fields."""


class Blocks:
    """The blocks of an answer, and the events that report their growth.

    Attributes:
        content: Texts, thoughts and calls in the API's format. A call gets its input when it ends;
            the input of a cut call stays empty.
    """

    def __init__(self) -> None:
        self.content: list[dict[str, Any]] = []
        self._arguments = ""
        self._open = False

    @classmethod
    def whole(cls, parts: Iterable[Part]) -> Blocks:
        """Return the blocks of a complete answer."""
        blocks = cls()
        for part in parts:
            list(blocks.take(part))
        list(blocks.end())
        return blocks

    def take(self, part: Part) -> Iterator[Event]:
        """Add a part of the answer; yield the events that report it."""
        if isinstance(part, (Content, Thought)):
            if part.text:
                yield from self._write(*_TEXTS[type(part)], part.text)
        elif isinstance(part, CallBegun):
            yield from self.end()
            called = {"id": part.call_id, "name": part.name, "input": {}}
            yield self._begin({"type": "tool_use", **called})
        elif isinstance(part, Arguments):
            self._arguments += part.text
            yield self._delta({"type": "input_json_delta", "partial_json": part.text})

    def end(self) -> Iterator[Event]:
        """End the open block, if there is one."""
        if not self._open:
            return
        self._open = False
        if self.content[-1]["type"] == "tool_use":
            self.content[-1]["input"] = _input(self._arguments)
            self._arguments = ""
        yield {"type": "content_block_stop", "index": len(self.content) - 1}

    def _write(self, kind: str, delta: str, more: Mapping[str, Any], text: str) -> Iterator[Event]:
        if not self._open or self.content[-1]["type"] != kind:
            yield from self.end()
            yield self._begin({"type": kind, kind: "", **more})
        self.content[-1][kind] += text
        yield self._delta({"type": delta, kind: text})

    def _begin(self, block: dict[str, Any]) -> Event:
        self.content.append(block)
        self._open = True
        begun = {"index": len(self.content) - 1, "content_block": dict(block)}
        return {"type": "content_block_start", **begun}

    def _delta(self, delta: dict[str, Any]) -> Event:
        return {"type": "content_block_delta", "index": len(self.content) - 1, "delta": delta}


def _input(arguments: str) -> dict[str, Any]:
    try:
        given = parsed(arguments)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
