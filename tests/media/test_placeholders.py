"""Texts that stand for media until a prompt is tokenized."""

from __future__ import annotations

import pytest
from specllama.errors import ArgumentError
from specllama.media.placeholders import MARKER, Placeholders


def split(media: Placeholders[str], prompt: str) -> tuple[list[int], tuple[str, ...]]:
    found = media.split(prompt, lambda text: [ord(one) for one in text], -1)
    return list(found), found.media


def test_a_prompt_has_an_id_for_each_medium_in_order() -> None:
    media: Placeholders[str] = Placeholders()
    first, second = media.add("a"), media.add("b")
    assert split(media, f"x{second}yz{first}") == ([120, -1, 121, 122, -1], ("b", "a"))


def test_a_marker_that_a_user_writes_is_text() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    other = Placeholders[str]().add("a")
    tokens, found = split(media, MARKER + other + shown)
    assert found == ("a",)
    assert tokens == [ord(one) for one in MARKER + other] + [-1]


def test_a_medium_that_the_template_leaves_out_is_an_error() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    media.add("b")
    with pytest.raises(ArgumentError, match="leaves out 1 of the 2"):
        split(media, shown)


def test_texts_are_in_lines_of_their_own_and_media_are_not() -> None:
    media: Placeholders[str] = Placeholders()
    shown = media.add("a")
    assert media.joined(["x", "y", shown, "z", "w"]) == f"x\ny{shown}z\nw"
    assert media.shown(f"x{shown}") == "x" + MARKER
    assert media.left_out(f"x{shown}y") == "xy"
