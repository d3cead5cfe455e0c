"""The items of an answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specllama.dialogue.answer_parts import Arguments, CallBegun, Content, Part, Thought

Event = dict[str, Any]


@dataclass(frozen=True)
class _Text:
    """A kind of item with a text, and the names in its events."""

    item: str
    prefix: str  # of the items' ids
    more: Mapping[str, Any]  # fields of the item
    part: str
    part_more: Mapping[str, Any]  # fields of the part
    events: str

    def shown(self, **text: str) -> Event:
        known = {"logprobs": self.part_more["logprobs"]} if "logprobs" in self.part_more else {}
        return {"content_index": 0, **text, **known}


_TEXTS: Mapping[type[Part], _Text] = {
    Content: _Text(
        "message", "msg", {"role": "assistant"},
        "output_text", {"annotations": [], "logprobs": []}, "response.output_text",
    ),
    Thought: _Text(
        "reasoning", "rs", {"summary": []}, "reasoning_text", {}, "response.reasoning_text"
    ),
}  # fmt: skip


class Output:
    """The items of an answer, and the events that report their growth.

    Attributes:
        items: Messages, thoughts and calls in the API's format.
    """

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    @classmethod
    def whole(cls, parts: Iterable[Part], status: str) -> Output:
        """Return the items of a complete answer. status: The status of the last item."""
        output = cls()
        for part in parts:
            list(output.take(part))
        list(output.end(status))
        return output

    def take(self, part: Part) -> Iterator[Event]:
        """Add a part of the answer; yield the events that report it."""
        if isinstance(part, (Content, Thought)):
            if part.text:
                yield from self._write(_TEXTS[type(part)], part.text)
        elif isinstance(part, CallBegun):
            yield from self.end("completed")
            yield from self._begin({
                "type": "function_call",
                "id": f"fc_{secrets.token_hex(12)}",
                "call_id": part.call_id,
                "name": part.name,
                "arguments": "",
            })  # fmt: skip
        elif isinstance(part, Arguments):
            self.items[-1]["arguments"] += part.text
            yield self._of_item("response.function_call_arguments.delta", delta=part.text)

    def end(self, status: str) -> Iterator[Event]:
        """End the open item, if there is one.

        Args:
            status: "completed" or "incomplete".
        """
        if not self.items or self.items[-1]["status"] != "in_progress":
            return
        item = self.items[-1]
        item["status"] = status
        if kind := next((one for one in _TEXTS.values() if one.item == item["type"]), None):
            (part,) = item["content"]
            yield self._of_item(f"{kind.events}.done", **kind.shown(text=part["text"]))
            yield self._of_item("response.content_part.done", content_index=0, part=part)
        else:
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield self._of_item("response.function_call_arguments.done", **done)
        yield self._whole("response.output_item.done")

    def _write(self, kind: _Text, text: str) -> Iterator[Event]:
        last = self.items[-1] if self.items else {"type": "", "status": ""}
        if (last["type"], last["status"]) != (kind.item, "in_progress"):
            yield from self.end("completed")
            item_id = f"{kind.prefix}_{secrets.token_hex(12)}"
            yield from self._begin({"type": kind.item, "id": item_id, **kind.more, "content": []})
            part = {"type": kind.part, "text": "", **kind.part_more}
            self.items[-1]["content"].append(part)
            added = {"content_index": 0, "part": dict(part)}
            yield self._of_item("response.content_part.added", **added)
        self.items[-1]["content"][0]["text"] += text
        yield self._of_item(f"{kind.events}.delta", **kind.shown(delta=text))

    def _begin(self, item: dict[str, Any]) -> Iterator[Event]:
        self.items.append({**item, "status": "in_progress"})
        yield self._whole("response.output_item.added")

    def _whole(self, kind: str) -> Event:
        item = dict(self.items[-1])
        if "content" in item:
            item["content"] = [dict(part) for part in item["content"]]
        return {"type": kind, "output_index": len(self.items) - 1, "item": item}

    def _of_item(self, kind: str, **more: Any) -> Event:
        return {
            "type": kind,
            "item_id": self.items[-1]["id"],
            "output_index": len(self.items) - 1,
            **more,
        }
