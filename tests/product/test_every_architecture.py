"""Other architectures of llama.cpp: drafts, earlier requests and concurrent requests change no
token.

The models are small, random ones (any_model.py) whose memory, positions or states differ from a
Llama's. Where possible, sessions are exact and log-probabilities are equal to the last bit;
elsewhere sums may be rounded differently in decodes of another width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures, has_states, write
from drafters import MostlyRight
from random_model import words
from session_options import EXACT_HERE, Open
from specllama import Generation, ModelError, SpecSession

GENTLY = 1e-4
"""Largest difference of log-probabilities in inexact sessions. (Measured: 1e-5, and 0.1 and more if
states are mixed up.)"""

OPTIONS: dict[str, Any] = {
    "max_tokens": 30,
    "temperature": 1.0,
    "seed": 3,
    "logprobs": 5,
    "logit_bias": {2: -math.inf},
}
PROMPTS = [[1, *words(n, seed=n)] for n in (0, 5, 30, 45, 80, 110)]

Check = Callable[..., None]


ALL = architectures()
NAMES = [
    name for name in ALL if not name.endswith(" with prediction") or name.split()[0] not in ALL
]
"""Without variants "... with prediction": MTP layers do not change what a model generates."""


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    architecture: str = request.param
    return architecture


@pytest.fixture(scope="module")
def model(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("models") / "random.gguf", name, architectures()[name])


@pytest.fixture(scope="module")
def exact(name: str) -> bool:
    if name == "gemma3n" and EXACT_HERE is not True:
        pytest.skip("22 random layers of Gemma 3n amplify rounding; exact sessions are needed")
    return EXACT_HERE is True and not has_states(name)


@pytest.fixture(scope="module")
def opened(model: Path, exact: bool) -> Iterator[Open]:
    sessions = []
    numbers = {"exact": True} if exact else {"kv_type": "f32", "flash_attn": False}

    def open_one(draft: Any = None, **options: Any) -> SpecSession:
        sessions.append(SpecSession(model, draft, n_threads=1, n_ctx=512, **numbers, **options))
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


@pytest.fixture(scope="module")
def expected(opened: Open) -> list[Generation]:
    """The tokens after each prompt, one request after another and without drafts."""
    session = opened()
    return [session.generate(prompt, **OPTIONS) for prompt in PROMPTS]


@pytest.fixture(scope="module")
def check(exact: bool, expected: list[Generation]) -> Check:
    """Compares an answer to prompt i that begins after n_said tokens of the expected answer."""

    def same(found: Generation, i: int, n_said: int = 0) -> None:
        rest = expected[i].tokens[n_said:]
        n_common = min(len(found.tokens), len(rest))
        assert n_common > 0
        assert found.tokens[:n_common] == rest[:n_common]
        others = expected[i].logprobs[n_said:][:n_common]
        for one, other in zip(found.logprobs[:n_common], others, strict=True):
            bound = pytest.approx(dict(other.top), rel=0, abs=0 if exact else GENTLY)
            assert dict(one.top) == bound

    return same


def test_drafts_next_to_other_requests_change_no_token_of_any_architecture(
    opened: Open, check: Check, expected: list[Generation]
) -> None:
    drafter = MostlyRight()
    drafter.texts = [[*p, *e.tokens] for p, e in zip(PROMPTS, expected, strict=True)]
    session = opened(drafter, spec_length=4, n_seq=3)  # 3 does not divide a batch of 512
    generations = session.generate(PROMPTS, **OPTIONS)
    for i, generation in enumerate(generations):
        check(generation, i)
    n_accepted = sum(generation.stats.accepted for generation in generations)
    assert 0 < n_accepted < sum(generation.stats.drafted for generation in generations)


def test_a_model_drafts_for_itself_or_is_refused_if_recurrent(
    model: Path, opened: Open, check: Check, name: str
) -> None:
    if has_states(name):
        with pytest.raises(ModelError, match="cannot draft: its memory"):
            opened(model)
        return
    session = opened(model, spec_length=4)
    for i in (2, 5):
        generation = session.generate(PROMPTS[i], **OPTIONS)
        check(generation, i)
        assert generation.stats.accepted > 0


def test_reused_and_cached_prompts_change_no_token(
    opened: Open, check: Check, expected: list[Generation]
) -> None:
    """Continued, edited, and continued from a copy in main memory after another text."""
    session = opened("ngram", spec_length=4, cache_ram=-1)
    for i in (3, 5):
        check(session.generate(PROMPTS[i], **OPTIONS | {"max_tokens": 12}), i)
        check(session.generate([*PROMPTS[i], *expected[i].tokens[:12]], **OPTIONS), i, 12)
        check(session.generate([*PROMPTS[i], *expected[i].tokens[:4]], **OPTIONS), i, 4)
    session.generate(PROMPTS[4], max_tokens=1)
    again = session.generate([*PROMPTS[5], *expected[5].tokens[:6]], **OPTIONS)
    check(again, 5, 6)
    assert again.stats.reused_tokens > 0


def test_requests_with_a_common_prefix_change_no_token(
    opened: Open, check: Check, expected: list[Generation]
) -> None:
    """The first request is unfinished when the others reuse its prefix."""
    session = opened("ngram", spec_length=4, n_seq=4)
    first = session.stream(PROMPTS[5], **OPTIONS)
    next(first)
    said = [0, 6, 12]
    others = [[*PROMPTS[5], *expected[5].tokens[:n]] for n in said]
    for n, generation in zip(said, session.generate(others, **OPTIONS), strict=True):
        check(generation, 5, n)
    check(first.result(), 5)


def test_a_saved_state_continues_in_another_session(
    opened: Open, check: Check, expected: list[Generation], tmp_path: Path
) -> None:
    first = opened("ngram", spec_length=4)
    first.generate(PROMPTS[5], **OPTIONS | {"max_tokens": 10})
    first.save_state(tmp_path / "state")
    second = opened("ngram", spec_length=4)
    second.load_state(tmp_path / "state")
    generation = second.generate([*PROMPTS[5], *expected[5].tokens[:10]], **OPTIONS)
    check(generation, 5, 10)
    assert generation.stats.reused_tokens > len(PROMPTS[5])
