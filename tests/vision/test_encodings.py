"""What the projector made of the last images is kept, so another beginning costs no encoding."""

from __future__ import annotations

from collections.abc import Callable

from seeing import answer
from specllama import SpecSession
from vision_models import Part, VisionModel, picture

Expect = Callable[..., list[int]]
Seeing = Callable[..., SpecSession]

N = 20


def test_an_image_after_another_beginning_is_not_encoded_again(
    expect: Expect, seeing: Seeing
) -> None:
    session = seeing()
    image = picture(1)
    for beginning in ("Be brief.", "Be as long as it takes.", "w"):
        parts: list[Part] = [beginning, image, "What is this?"]
        assert answer(session, parts, N) == expect(parts, N)
        assert session._backend.n_encoded == 1
    parts = ["Compare", image, "and", picture(2), "now"]
    assert answer(session, parts, N) == expect(parts, N)
    assert session._backend.n_encoded == 2


def test_an_image_that_comes_twice_in_a_prompt_is_encoded_once(
    expect: Expect, seeing: Seeing
) -> None:
    session = seeing()
    parts: list[Part] = ["Compare", picture(1), "and", picture(1), "now"]
    assert answer(session, parts, N) == expect(parts, N)
    assert session._backend.n_encoded == 1


def test_requests_at_once_share_what_was_encoded(expect: Expect, seeing: Seeing) -> None:
    session = seeing(n_seq=2)
    prompts: list[list[Part]] = [["ab", picture(3), "cd"], ["efgh", picture(3), "ij"]]
    for parts in prompts:
        assert answer(session, parts, N) == expect(parts, N)
    assert session._backend.n_encoded == 1


def test_another_session_encodes_for_itself(seeing: Seeing, model: VisionModel) -> None:
    parts: list[Part] = ["ab", picture(1), "cd"]
    for session in (seeing(), seeing()):
        assert session._backend.n_encoded == 0
        answer(session, parts, 2)
        assert session._backend.n_encoded == 1
