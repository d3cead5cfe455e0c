"""Reads the images and sounds of a request."""

from __future__ import annotations

from typing import Any

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.media import data_url
from specllama.media.placeholders import Placeholders
from specllama.model.loaded_model import LoadedModel
from specllama.model.media_reader import MediaReader
from specllama.server.body.fields import Fields
from specllama.server.error import ApiError
from specllama.server.media.access import MOST_URLS, MediaAccess, WantedImages

_KINDS = ("image_url", "input_image", "image", "input_audio")


class RequestMedia:
    """The media of a request, in the formats of all APIs.

    Args:
        model: The model that reads them.
        fields: The request.

    Attributes:
        sees: Whether the model sees images.
    """

    def __init__(self, model: LoadedModel, fields: Fields) -> None:
        self.sees = model.sees
        self._hears = model.hears
        self._access = fields.media or MediaAccess()
        self._reader = MediaReader(
            sees=model.sees, audio_rate=model.audio_rate, hold=self._access.held.hold
        )
        self._wanted: dict[str, str] = {}

    def taken(self) -> Placeholders[_core.Media]:
        """Return the media that were read. Raises WantedImages if some must be downloaded first."""
        if self._wanted:
            raise WantedImages(self._wanted)
        return self._reader.placeholders

    def joined(self, parts: list[str]) -> str:
        """See `Placeholders.joined`."""
        return self._reader.placeholders.joined(parts)

    def takes(self, kind: str) -> bool:
        """Whether parts of a kind are images or sounds that the model can see or hear."""
        return kind in _KINDS and (self._hears if kind == "input_audio" else self.sees)

    def part(self, part: Fields) -> str | None:
        """Return the placeholder of an image or a sound in a message; None if the part is something
        else. Raises ApiError if it cannot be used."""
        kind = part.any("type")
        if kind not in _KINDS:
            return None
        if kind == "input_audio":
            return self._sound(part)
        if kind == "image":
            self._check_sees(part.full_name("source"))
            return self._block(part)
        self._check_sees(part.full_name("image_url"))
        if part.any("file_id"):
            part.refuse_unsupported("file_id")
        part.required("image_url")
        given = part.any("image_url")
        holder = part.object("image_url") if isinstance(given, dict) else part
        name = "url" if isinstance(given, dict) else "image_url"
        holder.required(name)
        return self._image_at(holder.full_name(name), holder.text(name))

    def encoded(self, field: str, data: str) -> str:
        """Return the placeholder of an image in base64. Raises ApiError."""
        self._check_sees(field)
        with _Reported(field):
            return self._image(field, data_url.from_base64(field, data))

    def _block(self, part: Fields) -> str:
        """Return the placeholder of an image block of Anthropic's API."""
        part.required("source")
        source = part.object("source")
        kind = source.text("type")
        if kind == "url":
            source.required("url")
            return self._image_at(source.full_name("url"), source.text("url"))
        if kind != "base64":
            source.required("type")
            source.refuse("type", '"base64" or "url"')
        source.required("data")
        return self.encoded(source.full_name("data"), source.text("data"))

    def _image_at(self, field: str, url: str) -> str:
        if url[:5].lower() == data_url.SCHEME:
            with _Reported(field):
                return self._image(field, data_url.content(field, url))
        downloaded = self._access.downloaded
        if downloaded is None:
            raise ApiError(
                400,
                f"{field} must be a data URL, not {_check.quoted(url)}: this server does not "
                "download images (see --allow-image-urls).",
                param=field,
            )
        if url in downloaded:
            return self._image(field, downloaded[url])
        self._wanted[url] = field
        if len(self._wanted) > MOST_URLS:
            raise ApiError(
                400, f"{field}: a request may have at most {MOST_URLS} image URLs.", param=field
            )
        return ""

    def _image(self, field: str, data: bytes) -> str:
        with _Reported(field):
            return self._reader.image(field, data)

    def _sound(self, part: Fields) -> str:
        part.required("input_audio")
        given = part.object("input_audio")
        given.required("data")
        field = given.full_name("data")
        with _Reported(field):
            return self._reader.sound(field, data_url.from_base64(field, given.text("data")))

    def _check_sees(self, field: str) -> None:
        with _Reported(field):
            self._reader.check_sees(field)


class _Reported:
    """Inside a `with` statement, turns an ArgumentError into an ApiError of a field."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ArgumentError):
            raise ApiError(400, str(error), param=self._field) from None
