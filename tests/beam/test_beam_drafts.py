"""Drafts for beam search: the same beams as without drafts, in fewer decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prompts import MODULE, PROMPTS
from random_model import WRITERS, write_experts
from reference_beams import found
from session_options import EXACT_HERE, Open
from specllama import Drafter, SpecSession

PROMPT = "def fibonacci(n):\n    a, b = 0, 1\n"
SOME = ["module", "class", "json", "counting", "english", "emoji", "one token"]


@pytest.mark.parametrize("n_beams", [2, 4, 8])
def test_beams_are_bit_identical_with_and_without_drafts(open_session: Open, n_beams: int) -> None:
    plain = open_session(draft=None)
    sessions = [open_session(spec_length=n) for n in (1, 8)] + [open_session(spec_length="auto")]
    n_ahead = 0
    for name in SOME:
        options: dict[str, Any] = {"n_beams": n_beams, "max_tokens": 48}
        expected = plain.beam_search(PROMPTS[name], **options)
        assert len(expected) == n_beams
        assert expected[0].stats.exact is (EXACT_HERE is True)
        assert expected[0].stats.drafted == 0
        for session in sessions:
            beams = session.beam_search(PROMPTS[name], **options)
            assert found(beams) == found(expected)
            n_ahead += beams[0].stats.accepted
    assert n_ahead > 0


def test_beams_of_float_weights_are_the_same_with_drafts(tmp_path: Path) -> None:
    """Float weights give other bits at width 1, so no token is decoded alone. Most drafts are
    wrong."""
    model = write_experts(tmp_path / "experts.gguf")
    prompt = [1, *range(5, 40)] * 3
    options: dict[str, Any] = {"n_beams": 3, "max_tokens": 60}
    with SpecSession(model, None, exact=EXACT_HERE, n_threads=1) as session:
        expected = found(session.beam_search(prompt, **options))
    for spec_length in (2, 7):
        with SpecSession(
            model, "ngram", exact=EXACT_HERE, n_threads=1, spec_length=spec_length
        ) as session:
            beams = session.beam_search(prompt, **options, reference=[*range(5, 90)] * 4)
            assert found(beams) == expected
            assert beams[0].stats.drafted > 0


def test_beams_are_the_same_with_right_wrong_and_nonsense_drafts(open_session: Open) -> None:
    """The right text, another one, and nonsense; near the end of the context, too."""
    plain = open_session(draft=None)
    session = open_session(spec_length=5)
    for prompt, n in ((PROMPT, 40), (MODULE * 8, 30)):
        options: dict[str, Any] = {"n_beams": 4, "max_tokens": n}
        expected = plain.beam_search(prompt, **options)
        for reference in (expected[0].tokens, expected[3].tokens, [7] * 99, PROMPTS["json"]):
            beams = session.beam_search(prompt, **options, reference=reference)
            assert found(beams) == found(expected)
            assert beams[0].stats.drafter_errors == 0


@pytest.mark.parametrize("n_batch", [4, 7, 32])
def test_beams_are_the_same_when_rows_exceed_the_batch(open_session: Open, n_batch: int) -> None:
    options: dict[str, Any] = {"n_beams": 6, "max_tokens": 24}
    expected = open_session(draft=None).beam_search(PROMPT, **options)
    for draft in (None, "ngram"):
        beams = open_session(draft=draft, n_batch=n_batch).beam_search(PROMPT, **options)
        assert found(beams) == found(expected)


@pytest.mark.parametrize("n_beams", [2, 4, 8])
def test_copied_drafts_reduce_the_number_of_decodes(open_session: Open, n_beams: int) -> None:
    """A repetitive text of fixed length."""
    options: dict[str, Any] = {"n_beams": n_beams, "max_tokens": 96}
    prompt = PROMPTS["module"] * 2
    plain = open_session(draft=None).beam_search(prompt, **options)[0].stats
    stats = open_session(spec_length=8).beam_search(prompt, **options)[0].stats
    assert plain.rounds == plain.generated_tokens == stats.generated_tokens == 96
    print(f"{n_beams} beams: {stats.rounds / stats.generated_tokens:.2f} decodes a token")
    assert stats.rounds < {2: 0.85, 4: 0.95, 8: 1}[n_beams] * plain.rounds
    assert 0 < stats.accepted <= stats.drafted
    assert sum(accepted for _, accepted in stats.by_round) == stats.accepted
    by_drafter = stats.by_drafter
    assert sum(drafted for drafted, _ in by_drafter.values()) == stats.drafted
    assert sum(accepted for _, accepted in by_drafter.values()) == stats.accepted
    assert by_drafter["match"][1] > 0
    assert by_drafter["model"] == by_drafter["grammar"] == (0, 0)


class Wrong(Drafter):
    def __init__(self) -> None:
        self.n = 0

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        self.n += 1
        if self.n % 3 == 0:
            raise ValueError("no idea")
        return [1 << 20] if self.n % 3 == 1 else [5] * (max_tokens + 1)


def test_a_failing_drafter_changes_no_beam_and_is_counted(open_session: Open) -> None:
    beams = open_session(draft=Wrong()).beam_search(PROMPT, n_beams=1, max_tokens=12)
    assert found(beams) == found(
        open_session(draft=None).beam_search(PROMPT, n_beams=1, max_tokens=12)
    )
    assert beams[0].stats.drafter_errors > 3


class Copying(Drafter):
    """Drafts a given text."""

    def __init__(self, text: list[int]) -> None:
        self.text = text
        self.n_prompt = 0

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        at = len(tokens) - self.n_prompt
        same = list(tokens[self.n_prompt :]) == self.text[:at]
        return self.text[at : at + max_tokens] if same else []


def test_a_custom_drafter_receives_the_text_of_each_beam(open_session: Open) -> None:
    (best,) = open_session(draft=None).beam_search(PROMPT, n_beams=1, max_tokens=40)
    stats = (
        open_session(draft=Copying(best.tokens))
        .beam_search(PROMPT, n_beams=1, max_tokens=40)[0]
        .stats
    )
    assert stats.rounds <= 1 + 40 / 5 + 1
    assert stats.accepted == stats.drafted
    assert stats.by_drafter["other"] == (stats.drafted, stats.accepted)


@pytest.mark.parametrize("n_seq", [1, 2])
def test_beams_are_the_same_with_drafts_on_sliding_window_models(
    tmp_path: Path, n_seq: int
) -> None:
    """With one sequence, and with a separate memory for each of two."""
    model = WRITERS["sliding window"](tmp_path / "model.gguf")
    prompt = [1, *range(5, 60)]
    options: dict[str, Any] = {"n_beams": 4, "max_tokens": 50}
    with SpecSession(model, None, exact=EXACT_HERE, n_threads=1) as session:
        expected = found(session.beam_search(prompt, **options))
    with SpecSession(
        model, "ngram", exact=EXACT_HERE, n_seq=n_seq, n_threads=1, spec_length=4
    ) as session:
        session.generate(prompt, max_tokens=5)
        beams = session.beam_search(prompt, **options)
    assert found(beams) == expected
    assert beams[0].stats.drafted > 0
