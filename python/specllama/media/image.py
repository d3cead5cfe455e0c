"""Loads images from files, bytes, data URLs, Pillow images and arrays."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from specllama import _check, _files
from specllama._core import check_image_size
from specllama.errors import ArgumentError
from specllama.media import data_url
from specllama.media.image_file import decoded, rgb

if TYPE_CHECKING:
    from PIL.Image import Image

ImageSource: TypeAlias = Union[str, os.PathLike[str], bytes, "Image", NDArray[np.uint8]]
"""A path, a data URL, the bytes of a file, a Pillow image, or an array."""


def load_image(source: ImageSource, name: str = "image") -> NDArray[np.uint8]:
    """Return the pixels of an image.

    Args:
        source: The path of a PNG, JPEG, WebP, GIF or BMP file, its bytes, or a data URL with them;
            a Pillow image; or an array of uint8 of shape (height, width), (height, width, 1),
            (height, width, 3) or (height, width, 4): grey, RGB or RGBA. Images are turned by their
            EXIF orientation, transparent pixels are put over white, and only the first frame of an
            animated file is used.
        name: Its name in error messages, if it is not a file.

    Returns:
        RGB, of shape (height, width, 3): at most 50 million pixels, and neither side more than 200
        times the other.

    Raises:
        ArgumentError: It cannot be read, is too large, or is not such an image; or Pillow, which
            decodes files, is not installed.
    """
    if isinstance(source, np.ndarray):
        return _of_array(name, source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return decoded(name, bytes(source))
    if isinstance(source, str) and source[:5].lower() == data_url.SCHEME:
        return decoded(name, data_url.content(name, source))
    if isinstance(source, (str, os.PathLike)):
        path = _check.path(name, source)
        return decoded(path, _files.read(path))
    if _is_of_pillow(source):
        return _of_pillow(name, source)
    raise ArgumentError(
        f"{name} must be a path, a data URL, bytes, a Pillow image or an array, not "
        f"{_check.quoted(source)}."
    )


def _of_array(name: str, array: NDArray[Any]) -> NDArray[np.uint8]:
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or channels not in (1, 3, 4):
        raise ArgumentError(
            f"{name} must be an array of uint8 of shape (height, width, 3), not of "
            f"{array.dtype} {array.shape}."
        )
    check_image_size(name, array.shape[1], array.shape[0])
    if channels == 1:
        return np.repeat(array.reshape(*array.shape[:2], 1), 3, axis=2)
    if channels == 3:
        return np.ascontiguousarray(array)
    alpha = array[:, :, 3:].astype(np.uint32)
    over_white = array[:, :, :3] * alpha + 255 * (255 - alpha)
    return ((over_white + 127) // 255).astype(np.uint8)


def _is_of_pillow(source: object) -> bool:
    """Whether it is a Pillow image. Pillow is not imported for this check."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(source, pillow.Image)


def _of_pillow(name: str, image: Image) -> NDArray[np.uint8]:
    check_image_size(name, *image.size)
    try:
        return rgb(image)
    except Exception as error:  # Pillow decodes files only here, and decoders may raise anything
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ArgumentError(f"{name} cannot be used: {why:.120}.") from None
