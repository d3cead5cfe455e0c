"""Times of decodes, and how speeds are computed; no test asserts a speed."""

from __future__ import annotations

import pytest
from specllama import SpecSession
from specllama.measure import costs, speed
from specllama.session import BUNDLED_DRAFT
from specllama.theory import DecodeTimes

CPU = {"n_threads": 1, "n_gpu_layers": 0, "n_ctx": 256}


def test_alpha_of_rounds_ignores_tokens_after_a_rejection() -> None:
    """Tokens after a rejected one are not verified."""
    assert speed.alpha_of([(4, 4), (4, 1), (4, 0)]) == 5 / 7
    assert speed.alpha_of([(2, 2)]) == 1
    assert speed.alpha_of([(0, 0)]) == 0
    assert speed.alpha_of([]) == 0


def test_target_times_has_a_time_for_every_width() -> None:
    with SpecSession(draft=None, **CPU) as session:
        prompt = session.tokenize("def f(x):\n")
    v = costs.target_times(None, prompt, 5, 2, **CPU)
    assert len(v) == 5
    assert min(v) > 0
    assert costs.draft_step(None, BUNDLED_DRAFT, prompt, 1, **CPU) > 0


def test_alpha_speeds_are_measured_for_every_setting() -> None:
    with SpecSession(draft=None, **CPU) as session:
        prompts = [session.tokenize(text) for text in ("def f(x):\n", "import os\n")]
    turns = []
    result = speed.measure(
        None,
        BUNDLED_DRAFT,
        prompts,
        [(0.0, "coupled"), (1.0, "rejection")],
        costs.Costs(DecodeTimes([1.0, 1.0, 1.0]), 0.25),
        n_tokens=16,
        repeat=2,
        advance=lambda: turns.append(1),
        **CPU,
    )
    assert len(turns) == 6
    assert [(one.temperature, one.acceptance, one.gamma) for one in result] == [
        (0.0, "coupled", 1), (0.0, "coupled", 2), (1.0, "rejection", 1), (1.0, "rejection", 2),
    ]  # fmt: skip
    for one in result:
        tokens = sum(one.alpha**i for i in range(one.gamma + 1))
        assert one.expected == pytest.approx(tokens / (0.25 * one.gamma + 1))
        assert 0 < one.low <= one.measured <= one.high
