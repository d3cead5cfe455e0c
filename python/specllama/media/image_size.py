"""Limits on the size of an image."""

from __future__ import annotations

from specllama.errors import ArgumentError

MOST_PIXELS = 50_000_000
"""Most pixels of an image. A phone's camera has 48 million; models use a few million at most."""

_MOST_RATIO = 200
"""Largest ratio of the sides, as in Qwen's processors. Projectors work on nearly square pieces, and
would scale such an image to nothing."""


def check_size(name: str, width: int, height: int) -> None:
    """Raise ArgumentError, with `name` in the message, if an image of this size is not allowed."""
    if min(width, height) < 1:
        raise ArgumentError(f"{name} is empty ({width} x {height} pixels); give another image.")
    if width * height > MOST_PIXELS:
        raise ArgumentError(
            f"{name} has {width} x {height} pixels, more than {MOST_PIXELS}; make it smaller."
        )
    if max(width, height) > _MOST_RATIO * min(width, height):
        raise ArgumentError(
            f"{name} has {width} x {height} pixels, one side more than {_MOST_RATIO} times the "
            "other; crop it."
        )
