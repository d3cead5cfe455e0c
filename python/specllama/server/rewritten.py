"""Texts of a conversation as an answer would write them: plain ones within JSON, and those that
stand in JSON plain. Between the two no line end and no quotation mark is the same token, so a copy
would break off at each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from specllama.model.chat_template import Message
from specllama.requests.json_text import parsed

MOST_CHARACTERS = 64_000
"""Of the texts; the last count. Every request makes tokens of them anew."""


def rewritten(messages: Sequence[Message]) -> str:
    """Return the texts that change when they are written otherwise, in their order; "": none."""
    last_first = (
        text for message in reversed(messages) for text in reversed(list(_of_message(message)))
    )
    texts: list[str] = []
    room = MOST_CHARACTERS
    for text in last_first:
        texts.append(text[:room])
        room -= len(text)
        if room <= 0:
            break
    # Half a surrogate pair, which JSON can hold, is no text.
    return "\n".join(reversed(texts)).encode(errors="ignore").decode()


def _of_message(message: Message) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield from _strings(content, quoted=True)  # be it JSON: a file may be
        yield from _strings(_parsed(content), quoted=False)
    for call in message.get("tool_calls") or []:
        yield from _strings(call["function"]["arguments"], quoted=False)


def _parsed(content: str) -> Any:
    """Return the object or list that a content is; None: it is a text."""
    if not content.lstrip().startswith(("{", "[")):
        return None
    try:
        return parsed(content)
    except ValueError:
        return None


def _strings(value: Any, *, quoted: bool) -> Iterator[str]:
    """Yield the strings of a JSON value that are written otherwise in JSON."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        elif isinstance(one, str):
            written = json.dumps(one, ensure_ascii=False)
            if len(written) > len(one) + 2:
                # Behind a colon, as values stand: the blank between is a part of their first token.
                yield f": {written}" if quoted else one
