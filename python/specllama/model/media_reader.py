"""Reads the images and sounds in the parts of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.media import data_url
from specllama.media.placeholders import Placeholders

Message = Mapping[str, Any]


class MediaReader:
    """Reads the media of a conversation.

    Args:
        sees: Whether the model accepts images.
        audio_rate: Sample rate of the model's sounds in Hz; 0: it does not accept sounds.
        hold: Called with each medium and its size in bytes.

    Attributes:
        placeholders: The media read so far, and the texts that stand for them.
    """

    def __init__(
        self,
        *,
        sees: bool,
        audio_rate: int,
        hold: Callable[[_core.Media, int], None] = lambda medium, n_bytes: None,
    ) -> None:
        self.placeholders: Placeholders[_core.Media] = Placeholders()
        self._sees = sees
        self._audio_rate = audio_rate
        self._hold = hold

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return messages in which a text replaces each medium of their parts. Messages without
        media are returned unchanged and unchecked. Raises ArgumentError."""
        if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
            return messages
        return [self._message(f"messages[{i}]", one) for i, one in enumerate(messages)]

    def image(self, name: str, source: Any) -> str:
        """Return the text that stands for an image.

        Args:
            name: Its name in error messages.
            source: As for `load_image`.

        Raises:
            ArgumentError: The model does not accept images; or as for `load_image`.
        """
        self.check_sees(name)
        from specllama.media.image import load_image  # loads numpy

        pixels = load_image(source, name)
        return self._added(_core.Media.image(pixels), pixels.nbytes)

    def sound(self, name: str, source: Any) -> str:
        """Return the text that stands for a sound.

        Args:
            name: Its name in error messages.
            source: As for `load_sound`.

        Raises:
            ArgumentError: The model does not accept sounds; or as for `load_sound`.
        """
        if not self._audio_rate:
            raise ArgumentError(
                f"{name} is a sound, but the model does not accept sounds; use a model and a "
                "projector (mmproj) for sounds."
            )
        from specllama.media.sound import load_sound

        samples = load_sound(source, self._audio_rate, name)
        return self._added(_core.Media.audio(samples), samples.nbytes)

    def _added(self, medium: _core.Media, n_bytes: int) -> str:
        self._hold(medium, n_bytes)
        return self.placeholders.add(medium)

    def check_sees(self, name: str) -> None:
        """Raise ArgumentError if the model does not accept images."""
        if not self._sees:
            raise ArgumentError(
                f"{name} is an image, but the model does not accept images; use a model that does, "
                "with its projector (mmproj)."
            )

    def _message(self, name: str, message: Message) -> Message:
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, list) or not any(map(_is_medium, content)):
            return message
        parts = [self._part(f"{name}.content[{i}]", part) for i, part in enumerate(content)]
        return {**message, "content": self.placeholders.joined(parts)}

    def _part(self, name: str, part: Any) -> str:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "image":
            return self.image(name, part.get("image"))
        if kind == "image_url":
            return self.image(name, _url(name, part.get("image_url")))
        if kind == "audio":
            return self.sound(name, part.get("audio"))
        if kind == "input_audio":
            given = part.get("input_audio")
            data = given.get("data") if isinstance(given, Mapping) else None
            return self.sound(name, data_url.from_base64(name, _check.text(name, data)))
        text = part.get("text") if isinstance(part, Mapping) else None
        if not isinstance(text, str):
            raise ArgumentError(f"{name} must have a text, an image or a sound.")
        return _check.text(name, text)


def _is_medium(part: Any) -> bool:
    kinds = ("image", "image_url", "audio", "input_audio")
    return isinstance(part, Mapping) and part.get("type") in kinds


def _url(name: str, given: Any) -> str:
    """Return the data URL of a part. A path is refused, because the author of the messages may not
    be allowed to read files."""
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str) or url[:5].lower() != data_url.SCHEME:
        raise ArgumentError(
            f"{name} must have a data URL, not {_check.quoted(url)}; for a file, use "
            '{"type": "image", "image": path}.'
        )
    return url
