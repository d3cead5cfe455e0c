"""Prompts with images: with and without drafts, after any other prompts, the answers are those of
llama-cpp-python's own use of libmtmd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from seeing import ROUNDING, answer, finished, prompt, start
from specllama import ArgumentError, SpecSession, _core
from vision_models import Part, VisionModel, picture

Expect = Callable[..., list[int]]
Seeing = Callable[..., SpecSession]

N = 60
ONE: list[Part] = ["What is this? ", picture(1), "It is a"]


def can_go_back(model: VisionModel) -> bool:
    """Return whether the memory can be rewound to any position of such short prompts: it has no
    states, and no windows that have moved on."""
    return "qwen2vl" in model.text.name


def test_an_answer_about_images_is_that_of_llama_cpp(expect: Expect, seeing: Seeing) -> None:
    for parts in (ONE, [picture(2), "and", picture(3, 96, 64), "differ in"]):
        assert answer(seeing(), parts, N) == expect(parts, N)


def test_another_image_gives_another_answer(seeing: Seeing) -> None:
    session = seeing()
    other: list[Part] = [ONE[0], picture(9), ONE[2]]
    assert answer(session, ONE, N) != answer(session, other, N)


def test_the_rows_of_images_count_as_tokens_of_the_prompt(seeing: Seeing) -> None:
    session = seeing()
    made = prompt(session, ONE)
    stream = finished(start(session, ONE, 2))
    assert stream.stats.prompt_tokens == made.n_rows >= len(made.tokens)
    assert made.n_rows > len(made.tokens[made.tokens >= 0]) + 8


def test_only_the_part_after_an_equal_prefix_with_images_is_decoded(
    expect: Expect, seeing: Seeing, model: VisionModel
) -> None:
    session = seeing()
    first: list[Part] = ["AB", picture(1), "CD", picture(2), "EF", picture(3), "GH"]
    rows = {}
    for name, parts in {
        "first": first,
        "the same": first,
        "another question": [*first[:-1], "IJ"],
        "the last image replaced": [*first[:5], picture(4), "GH"],
        "the second image removed": [*first[:3], *first[5:]],
        "the first image replaced": ["AB", picture(5), *first[2:]],
    }.items():
        stream = finished(start(session, parts, 20))
        assert stream.tokens == expect(parts, 20), name
        rows[name] = stream.stats.reused_tokens
    whole = prompt(session, first).n_rows
    assert rows["first"] == 0
    assert rows["the second image removed"] <= rows["the last image replaced"]
    if not can_go_back(model):
        return
    assert rows["the same"] == whole - 1
    assert whole - 8 < rows["another question"] < whole
    assert rows["the last image replaced"] >= prompt(session, first[:5]).n_rows
    assert 0 < rows["the second image removed"] < rows["the last image replaced"]
    assert 0 < rows["the first image replaced"] < 6


def test_requests_with_different_images_are_served_at_once(expect: Expect, seeing: Seeing) -> None:
    session = seeing("ngram", n_seq=3, spec_length=3)
    prompts: list[list[Part]] = [
        ["What is this?", picture(1), "It is"],
        ["What is this?", picture(2, 64, 64), "It is", picture(3), "or"],
        ["What is there without images? " * 5],
    ]
    streams = [start(session, parts, 40) for parts in prompts]
    for stream, parts in zip(streams, prompts, strict=True):
        assert finished(stream).tokens == expect(parts, 40)


def test_a_second_request_copies_the_images_that_the_first_has_decoded(
    expect: Expect, seeing: Seeing
) -> None:
    session = seeing(n_seq=2)
    first: list[Part] = ["Some letters in front, which both share.", picture(1), "What?"]
    second: list[Part] = [*first[:2], "Whom?"]
    streams = [start(session, first, 30)]
    streams[0].step()
    streams[0].step()
    streams[0].step()
    streams.append(start(session, second, 30))
    for stream, parts in zip(streams, (first, second), strict=True):
        assert finished(stream).tokens == expect(parts, 30)


def test_saved_states_contain_images(
    expect: Expect, seeing: Seeing, tmp_path: Path, model: VisionModel
) -> None:
    file = tmp_path / "state"
    parts: list[Part] = ["AB", picture(1), "CD", picture(2), "EF"]
    first = seeing()
    answer(first, parts, 3)
    n_saved = first.save_state(file)
    session = seeing()
    assert session.load_state(file) == n_saved
    stream = finished(start(session, parts, 20))
    assert stream.tokens == expect(parts, 20)
    if can_go_back(model):
        assert stream.stats.reused_tokens > prompt(session, parts[:4]).n_rows - 4
    other: list[Part] = [*parts[:3], picture(3), "EF"]
    assert answer(session, other, 20) == expect(other, 20)
    with (
        SpecSession(model.text, None, mmproj=None, n_ctx=1024, **ROUNDING) as blind,
        pytest.raises(ArgumentError, match="another kind"),
    ):
        blind.load_state(file)


def test_copies_in_main_memory_contain_images(
    expect: Expect, seeing: Seeing, model: VisionModel
) -> None:
    session = seeing(cache_ram=64)
    first: list[Part] = ["Some letters in front, which both share.", picture(1), "What?"]
    other: list[Part] = ["Quite other letters, which take the slot of the others", picture(2), "?"]
    for parts in (first, other, first):
        stream = finished(start(session, parts, 20))
        assert stream.tokens == expect(parts, 20)
    if can_go_back(model):
        assert stream.stats.reused_tokens > 0


def test_a_text_session_refuses_images(model: VisionModel) -> None:
    with SpecSession(model.text, None, mmproj=None, n_ctx=256, n_threads=1) as session:
        assert not session._backend.sees
        with pytest.raises(ArgumentError, match="reads text only"):
            session._backend.media_prompt([_core.Media.image(picture(1))])


def test_exact_sessions_refuse_a_projector(seeing: Seeing) -> None:
    with pytest.raises(ArgumentError, match="not exact"):
        seeing(exact=True)


def test_image_ids_without_their_image_are_refused(seeing: Seeing) -> None:
    session = seeing()
    ids = prompt(session, ONE).tokens
    with pytest.raises(ArgumentError, match="out of range"):
        session._backend.check(ids, _core.GenerateOptions(max_tokens=1))


def test_a_context_that_images_fill_is_refused(seeing: Seeing) -> None:
    session = seeing(n_ctx=256)
    parts: list[Part] = []
    for i in range(20):
        parts += [picture(i, 64, 64), "and"]
    with pytest.raises(ArgumentError, match="images included, but the context has 256"):
        start(session, parts, 1)


def test_images_have_equal_ids_if_and_only_if_their_pixels_are_equal() -> None:
    image = _core.Media.image
    assert image(picture(1)).id == image(picture(1).copy()).id
    turned = picture(1).reshape(80, 48, 3)
    assert len({image(one).id for one in (picture(1), picture(2), turned)}) == 3
