"""Prompts with sounds: the answers are those of llama-cpp-python's own use of libmtmd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mtmd_reference import MtmdReference
from seeing import answer, finished, open_seeing, prompt, start
from specllama import ArgumentError
from vision_models import Part, VisionModel, picture, sound, write_hearing

ONE: list[Part] = ["What is said?", sound(1), "It is"]


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    return write_hearing(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def reference(hearing: VisionModel) -> Iterator[MtmdReference]:
    with MtmdReference(hearing) as one:
        yield one


@pytest.mark.parametrize("draft", ["ngram", None])
def test_an_answer_about_sounds_is_that_of_llama_cpp(
    hearing: VisionModel, reference: MtmdReference, draft: str | None
) -> None:
    with open_seeing(hearing, draft, spec_length=3) as session:
        backend = session._backend
        assert (backend.sees, backend.audio_rate) == (False, 16000)
        assert answer(session, ONE, 60) == reference.answer(ONE, 60)
        other: list[Part] = ["What is said?", sound(2, 0.5), "and", sound(3), "It is"]
        stream = finished(start(session, other, 60))
        assert stream.tokens == reference.answer(other, 60)
        assert stream.stats.prompt_tokens > 2 * 375


def test_a_model_that_only_hears_refuses_images(hearing: VisionModel) -> None:
    with (
        open_seeing(hearing) as session,
        pytest.raises(ArgumentError, match="An image cannot be used: the projector does not"),
    ):
        prompt(session, ["ab", picture(1), "cd"])
