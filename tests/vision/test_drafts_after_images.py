"""Drafts after images change no token, with every drafter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import heads
import pytest
from drafters import MostlyRight
from seeing import answer, finished, prompt, start
from specllama import SpecSession, _core
from vision_models import Part, VisionModel, picture, with_letters

Expect = Callable[..., list[int]]
Seeing = Callable[..., SpecSession]

N = 60
ONE: list[Part] = ["What is this? ", picture(1), "It is a"]


@pytest.mark.parametrize("draft", ["ngram", None])
def test_drafts_after_images_change_no_token(
    expect: Expect, seeing: Seeing, draft: str | None
) -> None:
    parts: list[Part] = ["abcabcabcabc", picture(1), "abcabcabc"]
    stream = finished(start(seeing(draft, spec_length=4), parts, 200))
    assert stream.tokens == expect(parts, 200)
    assert (stream.stats.accepted > 0) == (draft is not None)


def test_rejected_drafts_after_images_are_rewound(expect: Expect, seeing: Seeing) -> None:
    expected = expect(ONE, N)
    drafter = MostlyRight()
    session = seeing(drafter, spec_length=8)
    text = [token for token in prompt(session, ONE).tokens.tolist() if token >= 0]
    drafter.texts = [[*text, *expected]]
    stream = finished(start(session, ONE, N))
    assert stream.tokens == expected
    assert 0 < stream.stats.accepted < stream.stats.drafted


def test_a_text_model_drafts_for_a_vision_model(
    expect: Expect, seeing: Seeing, model: VisionModel
) -> None:
    if "qwen35" in model.text.name:
        pytest.skip("its memory cannot be rewound, so it cannot draft")
    session = seeing(model.text, spec_length=3)
    stream = finished(start(session, ONE, N))
    assert stream.tokens == expect(ONE, N)
    assert stream.stats.drafted > 0


def test_mtp_layers_draft_for_a_vision_model(
    expect: Expect, seeing: Seeing, model: VisionModel
) -> None:
    if not _core.brings_head(str(model.text)):
        pytest.skip("the model has no MTP layers")
    session = seeing("mtp", spec_length=3)
    stream = finished(start(session, ONE, N))
    assert stream.tokens == expect(ONE, N)
    assert stream.stats.drafted > 0


def test_trees_after_images_change_no_token(expect: Expect, seeing: Seeing) -> None:
    parts: list[Part] = ["abcabdabcabd", picture(1), "abcabdab"]
    stream = finished(start(seeing("ngram", spec_length=4, spec_tree=3), parts, 200))
    assert stream.tokens == expect(parts, 200)
    assert stream.stats.accepted > 0


def test_drafts_after_images_change_no_sampled_token(seeing: Seeing) -> None:
    plain, drafting = seeing(None), seeing("ngram", spec_length=4)
    n_drafted = 0
    for seed in range(3):
        same: dict[str, Any] = {"temperature": 1.0, "seed": seed}
        stream = finished(start(drafting, ONE, 100, **same))
        assert stream.tokens == answer(plain, ONE, 100, **same)
        n_drafted += stream.stats.drafted
    assert n_drafted > 0


def test_a_head_drafts_for_a_vision_model(
    expect: Expect, seeing: Seeing, model: VisionModel, tmp_path: Path
) -> None:
    if "qwen35" not in model.text.name:
        pytest.skip("the head is for another model")
    head = with_letters(heads.write_eagle3(tmp_path / "head.gguf"))
    session = seeing(head, spec_length=3)
    stream = finished(start(session, ONE, N))
    assert stream.tokens == expect(ONE, N)
    assert stream.stats.drafted > 0


@pytest.mark.slow
@pytest.mark.parametrize("draft", ["ngram", None])
def test_drafts_change_no_token_of_long_answers_to_images(
    expect: Expect, seeing: Seeing, draft: str | None
) -> None:
    session = seeing(draft, n_ctx=4096)
    assert answer(session, ONE, 2000) == expect(ONE, 2000)
