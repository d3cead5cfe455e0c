"""Speculation changes no token, compared with plain decoding and llama-cpp-python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from drafters import Random
from numpy.typing import NDArray
from prompts import PROMPTS, most_tokens
from random_model import EOS, N_VOCAB, write_dense
from specllama import Drafter, SpecSession

N_TOKENS = 200


class Known(Drafter):
    """Proposes the target's tokens (shift 0: an oracle), or always others (shift 1: an
    adversary)."""

    def __init__(
        self, expected: dict[tuple[int, ...], list[int]], shift: int, n_vocab: int
    ) -> None:
        self.expected = expected
        self.shift = shift
        self.n_vocab = n_vocab

    def begin(self, sequence: int, prompt: NDArray[np.int32]) -> None:
        self.n_prompt = len(prompt)
        self.generated = self.expected[tuple(prompt.tolist())]

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> Iterable[int]:
        at = len(tokens) - self.n_prompt
        return [(token + self.shift) % self.n_vocab for token in self.generated[at:][:max_tokens]]


def test_at_least_24_prompts_are_compared() -> None:
    assert len(PROMPTS) >= 24


def test_plain_tokens_equal_those_of_llama_cpp_python(
    plain_tokens: dict[str, list[int]], bundled_model: Path
) -> None:
    llama = llama_cpp.Llama(
        str(bundled_model),
        n_ctx=2048,
        type_k=llama_cpp.GGML_TYPE_Q8_0,
        type_v=llama_cpp.GGML_TYPE_Q8_0,
        flash_attn=True,
        n_gpu_layers=0,
        n_threads=1,
        n_threads_batch=1,
        verbose=False,
    )
    for name, prompt in PROMPTS.items():
        prompt_tokens = llama.tokenize(prompt.encode(), special=True)
        n_most = min(N_TOKENS, 2048 - len(prompt_tokens))
        expected: list[int] = []
        for token in llama.generate(prompt_tokens, temp=0.0):
            if token == llama.token_eos() or len(expected) == n_most:
                break
            expected.append(token)
        assert plain_tokens[name] == expected, name
    llama.close()


@pytest.mark.parametrize("spec_length", [1, 2, 4, 8, 16])
def test_ngram_drafts_change_no_token(
    spec_length: int, plain_tokens: dict[str, list[int]], open_session: Callable[..., SpecSession]
) -> None:
    session = open_session(spec_length=spec_length)
    accepted = 0
    for name, prompt in PROMPTS.items():
        generation = session.generate(prompt, max_tokens=most_tokens(session, prompt, N_TOKENS))
        assert generation.tokens == plain_tokens[name], name
        accepted += generation.stats.accepted
    assert accepted > 500  # drafts were accepted


@pytest.mark.parametrize(
    ("shift", "rate", "spec_length"),
    [(0, 1.0, 1), (0, 1.0, 4), (0, 1.0, 64), (1, 0.0, 1), (1, 0.0, 4), (1, 0.0, 16)],
)
def test_any_drafter_changes_no_token(
    shift: int,
    rate: float,
    spec_length: int,
    plain_tokens: dict[str, list[int]],
    open_session: Callable[..., SpecSession],
) -> None:
    drafter = Known({}, shift, n_vocab=4096)
    session = open_session(draft=drafter, spec_length=spec_length)
    for name, prompt in PROMPTS.items():
        drafter.expected[tuple(session.tokenize(prompt))] = plain_tokens[name]
        generation = session.generate(prompt, max_tokens=most_tokens(session, prompt, N_TOKENS))
        assert generation.tokens == plain_tokens[name], name
        assert generation.stats.drafted > 0
        assert generation.stats.acceptance_rate == rate
        assert generation.stats.drafter_errors == 0


@pytest.mark.parametrize(
    ("temperature", "acceptance"), [(0.0, "coupled"), (1.0, "coupled"), (1.0, "rejection")]
)
def test_random_drafts_are_accepted_with_probability_1_over_v(
    temperature: float,
    acceptance: str,
    tmp_path: Path,
    open_session: Callable[..., SpecSession],
) -> None:
    """A uniformly drafted token is the target's with probability 1 / V, the sum of p(x) / V over x,
    whatever the target's distribution is."""
    model = write_dense(tmp_path / "model.gguf")
    plain = open_session(model, None)
    session = open_session(model, Random(N_VOCAB), spec_length=2)
    prompt, rounds = [1, 5, 6], []
    for seed in range(4):
        options: dict[str, Any] = {"max_tokens": 900, "temperature": temperature, "seed": seed}
        options["logit_bias"] = {EOS: -math.inf}
        generation = session.generate(prompt, acceptance=acceptance, **options)
        rounds += generation.stats.by_round
        if acceptance == "coupled":
            assert generation.tokens == plain.generate(prompt, **options).tokens
    n_judged = sum(accepted + (accepted < drafted) for drafted, accepted in rounds)
    n_accepted = sum(accepted for _, accepted in rounds)
    assert n_judged > 3000
    expected = n_judged / N_VOCAB
    assert abs(n_accepted - expected) < 4 * math.sqrt(expected)


def test_drafts_that_fill_the_batch_change_no_token(
    plain_tokens: dict[str, list[int]], open_session: Callable[..., SpecSession]
) -> None:
    session = open_session(n_batch=8, spec_length=64)
    for name in ("module", "counting", "near the limit"):
        most = most_tokens(session, PROMPTS[name], N_TOKENS)
        generation = session.generate(PROMPTS[name], max_tokens=most)
        assert generation.tokens == plain_tokens[name], name
        assert max(drafted for drafted, _ in generation.stats.by_round) <= 7


def test_every_batch_size_gives_the_same_tokens(
    plain_tokens: dict[str, list[int]], open_session: Callable[..., SpecSession]
) -> None:
    for n_batch in (1, 3, 33, 1024):
        session = open_session(n_batch=n_batch)
        generation = session.generate(PROMPTS["module again"], max_tokens=N_TOKENS)
        assert generation.tokens == plain_tokens["module again"], n_batch
