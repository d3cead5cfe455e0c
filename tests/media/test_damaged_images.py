"""Damaged image files give an image, or an error of one sentence."""

from __future__ import annotations

import io
import random
import warnings

import numpy as np
import pytest
from PIL import Image
from specllama._core import MOST_IMAGE_PIXELS
from specllama.errors import ArgumentError
from specllama.media.image import load_image


def files() -> dict[str, bytes]:
    draws = np.random.default_rng(0)
    noise = Image.fromarray(draws.integers(0, 256, (24, 31, 3), np.uint8))
    alpha = Image.fromarray(draws.integers(0, 256, (24, 31, 4), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    made = {}
    for name, image, kind, options in (
        ("png", alpha, "PNG", {}),
        ("png of a palette", noise.quantize(16), "PNG", {"transparency": 3}),
        ("png of 16 bits", Image.fromarray(draws.integers(0, 65536, (9, 9), np.uint16)), "PNG", {}),
        ("jpeg", noise, "JPEG", {"exif": exif}),
        ("progressive jpeg", noise, "JPEG", {"progressive": True}),
        ("cmyk jpeg", noise.convert("CMYK"), "JPEG", {}),
        ("webp", noise, "WEBP", {"exif": exif}),
        ("lossless webp", alpha, "WEBP", {"lossless": True}),
        ("animated gif", noise, "GIF", {"save_all": True, "append_images": [noise]}),
        ("bmp", noise, "BMP", {}),
    ):
        file = io.BytesIO()
        image.save(file, kind, **options)  # type: ignore[arg-type]
        made[name] = file.getvalue()
    return made


FILES = files()


def damaged(data: bytes, draws: random.Random) -> bytes:
    """Return a file that is cut off, or has some bytes or a piece changed. Most changes are near
    its beginning, which has the sizes and tables."""
    changed = bytearray(data)
    kind = draws.randrange(4)
    if kind == 0:
        return data[: draws.randrange(len(data))]
    if kind == 1:
        begin = draws.randrange(len(data))
        del changed[begin : begin + draws.randint(1, 40)]
        return bytes(changed)
    reach = len(data) if kind == 2 else min(len(data), 100)
    for _ in range(draws.choice((1, 1, 2, 5, 20))):
        changed[draws.randrange(reach)] = draws.choice(
            (0, 1, 0x7F, 0x80, 0xFF, draws.randrange(256))
        )
    return bytes(changed)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_image_is_read_or_refused_with_one_sentence(name: str) -> None:
    draws = random.Random(name)
    n_refused = 0
    for _ in range(40):
        data = damaged(FILES[name], draws)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from Pillow, about the parts it ignores
            try:
                pixels = load_image(data)
            except ArgumentError as error:
                said = str(error)
                pixels = None
        if pixels is None:
            n_refused += 1
            assert said.startswith("image ")
            assert said.endswith(".")
            assert "\n" not in said
            continue
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert 0 < pixels.shape[0] * pixels.shape[1] <= MOST_IMAGE_PIXELS
    assert n_refused > 0
