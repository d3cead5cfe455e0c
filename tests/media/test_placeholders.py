"""Placeholders of media in a text until it is tokenized."""

from __future__ import annotations

import pytest
from specllama.errors import ArgumentError
from specllama.media.placeholders import MARKER, Placeholders


def split(media: Placeholders[str], prompt: str) -> list[list[int] | str]:
    return media.split(prompt, lambda text: [ord(one) for one in text])


def test_each_placeholder_is_replaced_by_its_medium() -> None:
    media: Placeholders[str] = Placeholders()
    first, second = media.add("a"), media.add("b")
    assert split(media, f"x{second}{first}yz") == [[120], "b", "a", [121, 122]]
    assert split(media, f"{first}{second}") == ["a", "b", []]


def test_a_placeholder_that_a_user_writes_stays_text() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    written = MARKER + Placeholders[str]().add("a")
    assert split(media, written + shown) == [[ord(one) for one in written], "a", []]


def test_a_medium_that_the_template_leaves_out_raises_an_error() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    media.add("b")
    with pytest.raises(ArgumentError, match="leaves out 1 of the 2"):
        split(media, shown)


def test_texts_are_joined_by_line_ends_and_media_are_not() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    assert media.joined(["x", "y", shown, "z", "w"]) == f"x\ny{shown}z\nw"
    assert media.shown(f"x{shown}") == "x" + MARKER
    assert media.left_out(f"x{shown}y") == "xy"
