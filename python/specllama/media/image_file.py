"""Image files, decoded by Pillow with limits on size and time."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specllama._core import MOST_IMAGE_BYTES, MOST_IMAGE_PIXELS, check_image_size
from specllama.errors import ArgumentError

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_SCANS = 20
"""Most scans of a JPEG of MOST_IMAGE_PIXELS pixels. Each scan passes over all pixels, even if it
has few bytes; real files have about ten."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
)
_ORIENTATION = 0x0112
_PLAIN = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV")
_WITH_ALPHA = ("LA", "PA", "RGBA", "RGBa")


def decoded(name: str, data: bytes) -> NDArray[np.uint8]:
    """Return the pixels of an image file: PNG, JPEG, WebP, GIF or BMP. Only the first frame of an
    animated file is used.

    Args:
        name: Its name in error messages.
        data: The file.

    Returns:
        As `load_image`.

    Raises:
        ArgumentError: It is too large, damaged, or not such a file; or Pillow is not installed. The
            size in the header is checked before anything is decoded.
    """
    if len(data) > MOST_IMAGE_BYTES:
        raise ArgumentError(
            f"{name} has {len(data)} bytes, more than {MOST_IMAGE_BYTES}; make the image smaller."
        )
    kind = kind_of(data)
    if kind is None:
        raise ArgumentError(f"{name} is not a PNG, JPEG, WebP, GIF or BMP file; convert it.")
    if kind == "WebP":  # opening it allocates the memory for all pixels at once
        check_image_size(name, *_webp_size(name, data))
    opener = _opener(kind)
    try:
        image = opener(io.BytesIO(data))
        width, height = image.size
    except Exception as error:  # decoders may raise anything
        raise _damaged(name, kind, error) from None
    check_image_size(name, width, height)
    n_scans = data.count(b"\xff\xda") if kind == "JPEG" else 1
    if n_scans * width * height > _MOST_SCANS * MOST_IMAGE_PIXELS:
        raise ArgumentError(f"{name} is a JPEG file with too many scans; save it again.")
    try:
        image.load()
        return rgb(image)
    except Exception as error:
        raise _damaged(name, kind, error) from None


def rgb(image: Image) -> NDArray[np.uint8]:
    """Return the pixels of a Pillow image, turned by its EXIF orientation, with transparent pixels
    over white. Raises ValueError for pixels that are not colours."""
    from PIL.Image import new

    image = _turned(image)
    if image.mode.startswith("I"):  # 16 bits; Pillow would clip the values, not scale them
        grey = np.clip(np.asarray(image).astype(np.int64) >> 8, 0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if image.mode not in _PLAIN:
        raise ValueError(f"its pixels are of Pillow's mode {image.mode}")
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        image = image.convert("RGBA")
        white = new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        image = white
    return np.array(image.convert("RGB"))


def _turned(image: Image) -> Image:
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT, 3: Transpose.ROTATE_180, 4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE, 6: Transpose.ROTATE_270, 7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }  # fmt: skip
    orientation = None
    with suppress(Exception):  # damaged EXIF data are ignored
        orientation = image.getexif().get(_ORIENTATION)
    turn = turns.get(orientation) if isinstance(orientation, int) else None
    return image if turn is None else image.transpose(turn)


def kind_of(data: bytes) -> str | None:
    """Return the kind of an image file by its first bytes; None if it is not supported."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    return next((kind for begin, kind in _SIGNATURES if data.startswith(begin)), None)


def _opener(kind: str) -> Callable[[io.BytesIO], Any]:
    """Return the function that opens a file of a kind. `Image.open` would try more kinds, and warn
    about sizes that are refused here anyway. Raises ArgumentError."""
    try:
        from PIL.BmpImagePlugin import BmpImageFile
        from PIL.GifImagePlugin import GifImageFile
        from PIL.JpegImagePlugin import jpeg_factory
        from PIL.PngImagePlugin import PngImageFile
        from PIL.WebPImagePlugin import WebPImageFile
    except ImportError:
        raise ArgumentError(
            "Images in files need the package Pillow; run: pip install 'specllama[images]'"
        ) from None
    return {
        "BMP": BmpImageFile, "GIF": GifImageFile, "JPEG": jpeg_factory, "PNG": PngImageFile,
        "WebP": WebPImageFile,
    }[kind]  # fmt: skip


def _webp_size(name: str, data: bytes) -> tuple[int, int]:
    """Return the width and height from the first chunk of a WebP file."""
    chunk, body = data[12:16], data[20:30]
    with suppress(struct.error, IndexError):
        if chunk == b"VP8X":
            return (
                1 + int.from_bytes(body[4:7], "little"),
                1 + int.from_bytes(body[7:10], "little"),
            )
        if chunk == b"VP8L":
            (bits,) = struct.unpack("<I", body[1:5])
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        if chunk == b"VP8 ":
            width, height = struct.unpack("<HH", body[6:10])
            return width & 0x3FFF, height & 0x3FFF
    raise _damaged(name, "WebP", ValueError("it has no header"))


def _damaged(name: str, kind: str, error: Exception) -> ArgumentError:
    why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return ArgumentError(f"{name} is a damaged {kind} file ({why:.120}); save it again.")
