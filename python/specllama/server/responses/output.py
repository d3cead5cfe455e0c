"""The items of an answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from specllama.server.tools.reader import Arguments, CallBegun, Content, Part

Event = dict[str, Any]


class Output:
    """The items of an answer as they grow, and the events that say so.

    Attributes:
        items: Messages and calls, as the API has them.
    """

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    @classmethod
    def whole(cls, parts: Iterable[Part], status: str) -> Output:
        """Return the items of an answer that is there as a whole, and ended so."""
        output = cls()
        for part in parts:
            list(output.take(part))
        list(output.end(status))
        return output

    def take(self, part: Part) -> Iterator[Event]:
        """Add a part of the answer; yield what is to be said of it."""
        if isinstance(part, Content):
            if part.text:
                yield from self._write(part.text)
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
        """End the item at work, if there is one.

        Args:
            status: "completed" or "incomplete".
        """
        if not self.items or self.items[-1]["status"] != "in_progress":
            return
        item = self.items[-1]
        item["status"] = status
        if item["type"] == "message":
            (part,) = item["content"]
            text = {"content_index": 0, "text": part["text"], "logprobs": []}
            yield self._of_item("response.output_text.done", **text)
            yield self._of_item("response.content_part.done", content_index=0, part=part)
        else:
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield self._of_item("response.function_call_arguments.done", **done)
        yield self._whole("response.output_item.done")

    def _write(self, text: str) -> Iterator[Event]:
        last = self.items[-1] if self.items else {"type": "", "status": ""}
        if (last["type"], last["status"]) != ("message", "in_progress"):
            yield from self.end("completed")
            item = {"type": "message", "id": f"msg_{secrets.token_hex(12)}", "role": "assistant"}
            yield from self._begin({**item, "content": []})
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self.items[-1]["content"].append(part)
            added = {"content_index": 0, "part": dict(part)}
            yield self._of_item("response.content_part.added", **added)
        self.items[-1]["content"][0]["text"] += text
        delta = {"content_index": 0, "delta": text, "logprobs": []}
        yield self._of_item("response.output_text.delta", **delta)

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
