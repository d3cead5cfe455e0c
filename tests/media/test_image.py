"""Images of all kinds become RGB."""

from __future__ import annotations

import base64
import io
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from specllama._core import MOST_IMAGE_BYTES, MOST_IMAGE_PIXELS
from specllama.errors import ArgumentError
from specllama.media.image import load_image

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
FORMATS = ["PNG", "JPEG", "WEBP", "GIF", "BMP"]


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def blocks() -> Image.Image:
    """Two rows of 16 by 16 pixels in three colours, which every format nearly preserves."""
    image = Image.new("RGB", (48, 32), WHITE)
    for i, colour in enumerate((RED, GREEN, BLUE)):
        image.paste(colour, (16 * i, 0, 16 * (i + 1), 16))
    return image


def near(pixel: Any, colour: tuple[int, int, int]) -> bool:
    return bool(np.abs(pixel.astype(int) - colour).max() <= 20)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_image_format_gives_the_same_pixels(kind: str) -> None:
    options = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    pixels = load_image(saved(blocks(), kind, **options))
    assert pixels.dtype == np.uint8
    assert pixels.shape == (32, 48, 3)
    for i, colour in enumerate((RED, GREEN, BLUE)):
        assert near(pixels[8, 16 * i + 8], colour)
    assert near(pixels[24, 24], WHITE)


def test_every_source_of_an_image_gives_the_same_pixels(tmp_path: Path) -> None:
    image = blocks()
    data = saved(image)
    path = tmp_path / "image.png"
    path.write_bytes(data)
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    expected = np.array(image)
    for source in (path, str(path), data, bytearray(data), memoryview(data), url, image, expected):
        assert np.array_equal(load_image(source), expected)  # type: ignore[arg-type]
    with Image.open(path) as opened:  # its pixels are not decoded yet
        assert np.array_equal(load_image(opened), expected)


GREY = np.array([[0, 128, 255]], np.uint8)
RAMP = np.array([[0, 0x80FF, 0xFFFF]], np.uint16)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.fromarray(GREY), [[0] * 3, [128] * 3, [255] * 3]),
        (Image.fromarray(GREY > 100), [[0] * 3, [255] * 3, [255] * 3]),
        (Image.fromarray(RAMP), [[0] * 3, [128] * 3, [255] * 3]),
        (Image.fromarray(RAMP.astype(np.int32)), [[0] * 3, [128] * 3, [255] * 3]),
        (Image.new("RGBA", (1, 1), (255, 0, 0, 0)), [WHITE]),
        (Image.new("RGBA", (1, 1), (255, 0, 0, 255)), [RED]),
        (Image.new("RGBA", (1, 1), (0, 0, 0, 128)), [[127] * 3]),
        (Image.new("LA", (1, 1), (0, 0)), [WHITE]),
        (Image.new("CMYK", (1, 1), (0, 255, 255, 0)), [RED]),
        (Image.new("HSV", (1, 1), (0, 255, 255)), [RED]),
    ],
)
def test_every_image_mode_is_converted_to_rgb_over_white(image: Image.Image, expected: Any) -> None:
    assert load_image(image)[0].tolist() == [list(one) for one in expected]


def test_a_grey_image_of_16_bits_is_scaled() -> None:
    assert load_image(saved(Image.fromarray(RAMP)))[0].tolist() == [[0] * 3, [128] * 3, [255] * 3]


def test_a_cmyk_image_keeps_its_colours() -> None:
    assert near(load_image(saved(blocks().convert("CMYK"), "JPEG", quality=95))[8, 8], RED)


def test_transparent_colours_of_an_image_palette_become_white() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF"):
        data = saved(image, kind, transparency=0)
        assert load_image(data)[0].tolist() == [list(WHITE), list(BLUE)]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_rotated_by_its_exif_orientation(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = load_image(saved(blocks(), "JPEG", quality=95, exif=exif))
    height, width = (48, 32) if orientation > 4 else (32, 48)
    assert pixels.shape == (height, width, 3)
    # The position of the file's first pixel, from the standard's table.
    row = 0 if orientation in (1, 2, 5, 6) else -1
    column = 0 if orientation in (1, 4, 5, 8) else -1
    assert near(pixels[row, column], RED)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # Pillow's
def test_damaged_exif_data_do_not_change_the_image() -> None:
    data = saved(blocks(), "JPEG", quality=95, exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert load_image(data).shape == (32, 48, 3)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animated_image_is_used(kind: str) -> None:
    first, second = (Image.new("RGB", (8, 8), colour) for colour in (RED, BLUE))
    options = {"lossless": True} if kind == "WEBP" else {}
    data = saved(first, kind, save_all=True, append_images=[second], duration=50, **options)
    assert np.array_equal(load_image(data), np.full((8, 8, 3), RED))


@pytest.mark.parametrize(
    "array", [GREY, GREY[:, :, np.newaxis], np.repeat(GREY[:, :, np.newaxis], 3, axis=2)]
)
def test_arrays_of_any_number_of_channels_are_read_as_images(array: Any) -> None:
    assert load_image(array)[0].tolist() == [[0] * 3, [128] * 3, [255] * 3]


def test_an_image_array_with_alpha_is_drawn_over_white() -> None:
    array = np.array([[[255, 0, 0, 0], [255, 0, 0, 255], [0, 0, 0, 128]]], np.uint8)
    assert load_image(array)[0].tolist() == [list(WHITE), list(RED), [127] * 3]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (np.zeros((4, 4, 3), np.float32), "array of uint8"),
        (np.zeros((4, 4, 2), np.uint8), "array of uint8"),
        (np.zeros((4,), np.uint8), "array of uint8"),
        (np.zeros((0, 4, 3), np.uint8), "4 x 0 pixels"),
        (np.zeros((1, 60_000), np.uint8), "60000 x 1 pixels, one side more than 200 times"),
        (np.broadcast_to(np.uint8(0), (10_000, 10_000)), "10000 x 10000 pixels, more than"),
        (b"", "not a PNG, JPEG, WebP, GIF or BMP file"),
        (b"%PDF-1.7", "not a PNG, JPEG, WebP, GIF or BMP file"),
        ("/nowhere/image.png", "/nowhere/image.png cannot be read"),
        ("data:image/png;base64,&&", "not base64"),
        ("data:image/png,abc", "must be a data URL"),
        (None, "must be a path"),
        (7, "must be a path"),
        (Image.new("F", (4, 4)), "mode F"),
        (Image.new("L", (1, 60_000)), "1 x 60000 pixels"),
        (saved(Image.new("L", (60_000, 1))), "60000 x 1 pixels"),
        (saved(Image.new("L", (4, 4)), "TIFF"), "not a PNG"),
    ],
)
def test_data_that_is_not_an_image_is_refused(source: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as caught:
        load_image(source)
    assert str(caught.value).endswith((".", "'"))


def test_an_image_file_of_too_many_bytes_is_refused() -> None:
    with pytest.raises(ArgumentError, match=f"more than {MOST_IMAGE_BYTES}"):
        load_image(b"\x89PNG\r\n\x1a\n" + bytes(MOST_IMAGE_BYTES))


def png(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header states these sides."""
    data = bytearray(saved(Image.new("1", (width, 1))))
    data[20:24] = struct.pack(">I", height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def webp(kind: bytes, width: int, height: int) -> bytes:
    """Return a WebP of a few bytes whose header states these sides."""
    heads = {
        b"VP8X": b"\0\0\0\0"
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + ((height - 1) << 14 | width - 1).to_bytes(4, "little"),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + width.to_bytes(2, "little") + height.to_bytes(2, "little"),
    }
    head = heads[kind]
    chunk = kind + len(head).to_bytes(4, "little") + head
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


BOMBS: dict[str, Callable[[], bytes]] = {
    "png": lambda: png(30_000, 30_000),
    "gif": lambda: saved(Image.new("1", (4, 4)), "GIF").replace(b"\4\0\4\0", b"\xff\x7f\xff\x7f"),
    "bmp": lambda: saved(Image.new("1", (4, 4)), "BMP").replace(
        b"\4\0\0\0\4\0\0\0", b"\xff\x7f\0\0\xff\x7f\0\0"
    ),
    "jpeg": lambda: saved(Image.new("L", (4, 4)), "JPEG").replace(
        b"\x08\0\4\0\4", b"\x08\xff\xff\xff\xff"
    ),
    "webp": lambda: webp(b"VP8X", 1 << 14, 1 << 14),
    "webp lossless": lambda: webp(b"VP8L", 1 << 14, 1 << 14),
    "webp lossy": lambda: webp(b"VP8 ", 16383, 16383),
    "png of 200 million": lambda: png(20_000, 10_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_refused_by_its_header(name: str) -> None:
    data = BOMBS[name]()
    tracemalloc.start()
    with pytest.raises(ArgumentError, match=f"pixels, more than {MOST_IMAGE_PIXELS}"):
        load_image(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_jpeg_of_many_scans_is_refused() -> None:
    data = saved(Image.new("L", (5000, 5000)), "JPEG", progressive=True)
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x00"
    with pytest.raises(ArgumentError, match="too many scans"):
        load_image(data[:-2] + 100 * scan + data[-2:])


def test_a_png_whose_text_chunk_decompresses_too_far_is_refused() -> None:
    info = PngInfo()
    info.add_text("comment", "a" * 100_000_000, zip=True)
    data = saved(Image.new("RGB", (4, 4)), pnginfo=info)
    assert len(data) < 1_000_000
    with pytest.raises(ArgumentError, match="damaged PNG file"):
        load_image(data)
