"""The messages of a conversation."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specllama import _check, _files
from specllama.errors import ArgumentError
from specllama.model.chat_template import Message

_ROLES = ("user", "assistant")
_MEDIA = {"image_url": "url", "input_audio": "data"}
"""Parts of messages that are images or sounds, with the field that has their content."""


class Conversation:
    """The messages of a conversation.

    Args:
        system: The system message; None: there is none.

    Attributes:
        system: The system message; may be changed at any time.
    """

    def __init__(self, system: str | None = None) -> None:
        self.system = system
        self._turns: list[dict[str, Any]] = []

    @property
    def messages(self) -> list[Message]:
        """All messages, the system message first."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, *self._turns]

    @property
    def asks(self) -> bool:
        """Whether the last message is the user's."""
        return bool(self._turns) and self._turns[-1]["role"] == "user"

    def ask(self, text: str, media: Sequence[dict[str, Any]] = ()) -> None:
        """Add a message of the user, with images and sounds, as parts of it, before its text."""
        content: str | list[dict[str, Any]] = text
        if media:
            content = [*media, {"type": "text", "text": text}]
        self._turns.append({"role": "user", "content": content})

    def answer(self, text: str) -> None:
        """Add an answer of the model."""
        self._turns.append({"role": "assistant", "content": text})

    def take_back(self, role: str) -> str | None:
        """Remove the last message and return its text, if it has this role; else return None."""
        if not self._turns or self._turns[-1]["role"] != role:
            return None
        return str(self._turns.pop()["content"])

    def clear(self) -> None:
        """Forget all but the system message."""
        self._turns.clear()

    def save(self, path: str) -> None:
        """Write the messages to a file, as JSON in the shape of the OpenAI API.

        Raises:
            ArgumentError: A file of that name exists and is not a conversation.
            SpecllamaError: The file cannot be written.
        """
        if os.path.isfile(path) and os.path.getsize(path) > 0:
            try:
                _read(path)
            except ArgumentError:
                raise ArgumentError(
                    f"{path} exists and is not a conversation; choose another name."
                ) from None
        text = json.dumps(self.messages, ensure_ascii=False, indent=2)
        with _files.replacing(Path(path)) as fresh:
            fresh.write_text(text + "\n", encoding="utf-8")

    def load(self, path: str) -> None:
        """Replace the messages by those of a file.

        Raises:
            ArgumentError: The file cannot be read, or is not a conversation; then nothing changes.
        """
        messages = _read(path)
        has_system = bool(messages) and messages[0]["role"] == "system"
        self.system = messages[0]["content"] if has_system else None
        self._turns = messages[1:] if has_system else messages

    def __len__(self) -> int:
        return len(self._turns)


def _read(path: str) -> list[dict[str, Any]]:
    """Return the messages of a file: a list, or, as in a request, an object with "messages"."""
    text = _files.read_text(path)
    try:
        held = json.loads(text.removeprefix("\N{BYTE ORDER MARK}"))
    except (ValueError, RecursionError):  # ValueError also for numbers with too many digits
        raise ArgumentError(f"{path} is not a conversation: it is not JSON.") from None
    messages = held.get("messages") if isinstance(held, dict) else held
    if not isinstance(messages, list):
        raise ArgumentError(f"{path} is not a conversation: it is not a list of messages.")
    read = []
    for i, message in enumerate(messages):
        roles = ("system", *_ROLES) if i == 0 else _ROLES
        if not isinstance(message, dict) or message.get("role") not in roles:
            raise ArgumentError(
                f"{path} is not a conversation: the role of message {i + 1} is not one of "
                f"{', '.join(roles)}."
            )
        said = _content(message.get("content"))
        if said is None:
            raise ArgumentError(f"{path} is not a conversation: message {i + 1} has no text.")
        if isinstance(said, str):
            _check.text(f"{path}: message {i + 1}", said)
        read.append({**message, "content": said})
    return read


def _content(content: Any) -> str | list[Any] | None:
    """Return the content of a message: its parts if it has images or sounds, else one text; None if
    it has other parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    if not all(isinstance(part, dict) for part in parts):
        return None
    texts = [part.get("text") for part in parts if not _is_medium(part)]
    if not all(isinstance(text, str) for text in texts):
        return None
    return parts if len(texts) < len(parts) else "\n".join(map(str, texts))


def _is_medium(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _MEDIA:
        return False
    held = part.get(kind)
    return isinstance(held, dict) and isinstance(held.get(_MEDIA[kind]), str)
