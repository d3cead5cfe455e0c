"""Kinds of models whose memory behaves differently: small random ones, decoded by llama.cpp.

Q8_0 weights and Q8_0 KV memory, as in the exact configuration, but for what is float32 in real
files, too (routers, convolutions): its sums depend on whether a batch is one token wide. Random
logits are too far apart for that to show in the tokens.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_model import N_VOCAB, WINDOW, WRITERS
from specllama import Drafter, SpecSession

Open = Callable[..., SpecSession]
CUTTABLE = {"dense", "experts", "sliding window"}


@pytest.fixture(scope="module", params=sorted(WRITERS))
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def model(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return WRITERS[kind](tmp_path_factory.mktemp("models") / "random.gguf")


def prompts(n: int) -> list[list[int]]:
    """Token ids with repetitions in them, of lengths around the window and the batch."""
    rng = random.Random(7)
    out = []
    for length in (1, 5, WINDOW - 1, WINDOW + 1, 60, 150, 200)[:n]:
        phrase = [rng.randrange(3, N_VOCAB - 1) for _ in range(12)]
        out.append([1, *(phrase * (length // 12 + 1))][:length])
    return out


def test_drafts_change_no_token(model: Path, open_session: Open) -> None:
    plain = open_session(model, None, n_batch=48)
    ngram = open_session(model, n_batch=48, spec_length=8)
    drafted = accepted = 0
    for prompt in prompts(7):
        expected = plain.generate(prompt, max_tokens=80).tokens
        generation = ngram.generate(prompt, max_tokens=80)
        assert generation.tokens == expected, len(prompt)
        drafted += generation.stats.drafted
        accepted += generation.stats.accepted
    assert drafted > 100
    assert accepted > 0


class SometimesRight(Drafter):
    """Knows what comes, and gets every third to fifth token wrong."""

    def __init__(self) -> None:
        self.rng = random.Random(3)
        self.coming: list[int] = []

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        draft = self.coming[len(tokens) - self.n_prompt :][:max_tokens]
        wrong = self.rng.randrange(2, 5)
        return [*draft[:wrong], *((token + 1) % N_VOCAB for token in draft[wrong:])]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_partly_accepted_drafts_change_no_token(
    model: Path, open_session: Open, temperature: float
) -> None:
    """Every round goes back to somewhere inside what it decoded."""
    plain = open_session(model, None, n_batch=48)
    drafter = SometimesRight()
    drafted = accepted = 0
    for spec_length in (3, 8):
        session = open_session(model, drafter, n_batch=48, spec_length=spec_length)
        for prompt in prompts(7):
            drafter.coming = plain.generate(
                prompt, max_tokens=80, temperature=temperature, seed=1
            ).tokens
            generation = session.generate(prompt, max_tokens=80, temperature=temperature, seed=1)
            assert generation.tokens == drafter.coming, len(prompt)
            drafted += generation.stats.drafted
            accepted += generation.stats.accepted
    assert 100 < accepted < drafted


class Wrong(Drafter):
    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> list[int]:
        return [3] * max_tokens


def test_what_must_be_decoded_again_stays_short(model: Path, kind: str, open_session: Open) -> None:
    """A memory that cannot be cut catches up now and then, in a round without a draft."""
    session = open_session(model, Wrong(), spec_length=4)
    rounds = session.generate([1, 5, 6], max_tokens=80, logit_bias={2: -math.inf}).stats.by_round
    longest = max(
        len(list(group))
        for drafting, group in itertools.groupby(rounds[1:-1], lambda r: r[0] > 0)
        if drafting
    )
    if kind in CUTTABLE:
        assert longest == len(rounds) - 2
    else:
        assert longest <= 5


def test_the_next_prompt_is_as_in_a_fresh_session(
    model: Path, kind: str, open_session: Open
) -> None:
    """Also where the common prefix is shorter than what a window still reaches."""
    options: dict[str, Any] = {"n_batch": 48, "spec_length": 8}
    session = open_session(model, **options)
    fresh = open_session(model, **options)
    long = prompts(7)[-1]
    session.generate(long, max_tokens=60)
    for keep in (199, 190, 150, 100, WINDOW, 10, 1):
        prompt = [*long[:keep], 5, 6, 7]
        fresh.generate([8], max_tokens=1)  # has nothing in common with the next
        expected = fresh.generate(prompt, max_tokens=40)
        generation = session.generate(prompt, max_tokens=40)
        assert generation.tokens == expected.tokens, keep
        if kind not in CUTTABLE:
            assert generation.stats.reused_tokens == 0
        elif kind != "sliding window":
            assert generation.stats.reused_tokens >= keep
        elif keep <= WINDOW:  # what it needs has left the window: all is decoded again
            assert generation.stats.reused_tokens == 0
        session.generate(long, max_tokens=60)


def test_a_conversation_goes_on(model: Path, kind: str, open_session: Open) -> None:
    """What was said stays in the memory, also where it cannot be cut."""
    session = open_session(model)
    tokens = prompts(5)[-1]
    for _ in range(3):
        generation = session.generate(tokens, max_tokens=20)
        assert generation.tokens == open_session(model).generate(tokens, max_tokens=20).tokens
        tokens = [*tokens, *generation.tokens, 9, 10]
    # All but the last token, which had not been decoded.
    assert session.generate(tokens, max_tokens=1).stats.reused_tokens == len(tokens) - 3


def test_stop_strings_cut_the_memory(model: Path, kind: str, open_session: Open) -> None:
    session = open_session(model, spec_length=8)
    for prompt in prompts(6):
        whole = session.generate(prompt, max_tokens=60)
        stop = whole.text[len(whole.text) // 3 :][:4]
        stopped = session.generate(prompt, max_tokens=60, stop=stop)
        assert stopped.finish_reason == "stop"
        assert session.generate(prompt, max_tokens=60).tokens == whole.tokens
