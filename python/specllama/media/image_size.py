"""How large an image may be."""

from __future__ import annotations

from specllama.errors import ArgumentError

MOST_PIXELS = 50_000_000
"""Most pixels of an image; a phone takes 48 million. Models see a few million of them at most."""

_MOST_RATIO = 200
"""Of one side to the other, as in Qwen's processors. Projectors work on pieces that are nearly
square, and would scale such an image to nothing."""


def check_size(name: str, width: int, height: int) -> None:
    """Raise ArgumentError if an image, called `name` in the sentence, may not have this size."""
    if min(width, height) < 1:
        raise ArgumentError(f"{name} has {width} x {height} pixels; give an image that has some.")
    if width * height > MOST_PIXELS:
        raise ArgumentError(
            f"{name} has {width} x {height} pixels, more than {MOST_PIXELS}; make it smaller."
        )
    if max(width, height) > _MOST_RATIO * min(width, height):
        raise ArgumentError(
            f"{name} has {width} x {height} pixels, one side more than {_MOST_RATIO} times the "
            "other; crop it."
        )
