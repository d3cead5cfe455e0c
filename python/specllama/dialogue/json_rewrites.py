"""Texts of a conversation in the form in which an answer may write them: plain texts as JSON
strings, and strings of JSON as plain texts. Line ends and quotation marks have different tokens in
the two forms, so a copied draft would fail at each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from specllama.model.chat_template import Message
from specllama.requests.json_text import parsed

MOST_CHARACTERS = 64_000
"""Most characters of the texts; the last ones are kept. Every request tokenizes them again."""


def json_rewrites(messages: Sequence[Message]) -> str:
    """Return the other form of all texts whose two forms differ, in order; "" if there are none."""
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
    # Lone surrogates, which JSON may contain, are dropped: they are not characters.
    return "\n".join(reversed(texts)).encode(errors="ignore").decode()


def _of_message(message: Message) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield from _strings(content, quoted=True)  # JSON, too: it may be the content of a file
        yield from _strings(_parsed(content), quoted=False)
    for call in message.get("tool_calls") or []:
        yield from _strings(call["function"]["arguments"], quoted=False)


def _parsed(content: str) -> Any:
    """Return a content as a JSON object or list; None if it is neither."""
    if not content.lstrip().startswith(("{", "[")):
        return None
    try:
        return parsed(content)
    except ValueError:
        return None


def _strings(value: Any, *, quoted: bool) -> Iterator[str]:
    """Yield the strings of a JSON value that need escapes in JSON. quoted: yield them as JSON."""
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
                # After a colon and a blank, like a value: the blank is part of the first token.
                yield f": {written}" if quoted else one
