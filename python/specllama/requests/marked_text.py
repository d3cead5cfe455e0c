"""Prompts that are texts with markers for images and sounds."""

from __future__ import annotations

from typing import Any

from specllama import _check, _core
from specllama.errors import ArgumentError
from specllama.media.placeholders import MARKER
from specllama.model.loaded_model import LoadedModel
from specllama.model.media_prompt import MediaPrompt


def marked_prompt(model: LoadedModel, text: str, media: Any) -> MediaPrompt:
    """Return the prompt for a text with markers.

    Args:
        model: The model that continues it.
        text: A text with `MARKER` for each medium.
        media: `_core.Media`, or images as `load_image` takes them, in order.

    Raises:
        ArgumentError: The numbers of markers and media differ; or a medium cannot be used.
    """
    if isinstance(media, (str, bytes)) or not _check.has_several(media):
        raise ArgumentError(f"media must be a list of images, not {_check.quoted(media)}.")
    given = list(media)
    pieces = text.split(MARKER)
    if len(pieces) - 1 != len(given):
        raise ArgumentError(
            f"media has {len(given)} images and sounds, but the prompt has {len(pieces) - 1} "
            f'"{MARKER}" for them; write one for each.'
        )
    reader = model.media_reader()
    for i, one in enumerate(given):
        if isinstance(one, _core.Media):
            reader.placeholders.add(one)
        else:
            reader.image(f"media[{i}]", one)
    parts: list[list[int] | _core.Media] = [model.tokenize(pieces[0])]
    for medium, piece in zip(reader.placeholders.media, pieces[1:], strict=True):
        parts += [medium, model.tokenize(piece, add_special=False)]
    return model.media_prompt(parts)
