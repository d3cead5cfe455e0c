"""Speculation changes no token: seeds x temperatures x truncations x drafters x kinds of models.

`make test` runs a sample with every combination of temperature and truncation, every kind of model
and every drafter; `make test-all` runs all.
"""

from __future__ import annotations

import itertools
import math
import platform
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from drafters import SometimesRight
from prompts import PROMPTS
from random_model import N_VOCAB, WRITERS, write_dense
from session_options import Open
from specllama.session import BUNDLED_DRAFT

Setting = dict[str, Any]

TEMPERATURES = [0.0, 0.3, 0.7, 1.0, 1.5]
TRUNCATIONS: list[Setting] = [
    {},
    {"top_k": 40},
    {"top_p": 0.9},
    {"min_p": 0.05},
    {"repeat_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.1},
]
SETTINGS: list[Setting] = [
    {"temperature": temperature, **cut}
    for temperature, cut in itertools.product(TEMPERATURES, TRUNCATIONS)
]
KINDS = ["bundled", *WRITERS]
DRAFTERS = ["ngram", "draft model", "Python"]
N_TOKENS = 40
N_SEEDS = 4

# Float weights with a memory that cannot be rewound: exact=True refuses these.
NEVER_EXACT = {"recurrent", "hybrid"}
IS_X86 = platform.machine() in ("x86_64", "AMD64")


class Bench:
    """One kind of model with every drafter, compared with plain decoding."""

    def __init__(self, kind: str, folder: Path, open_session: Open) -> None:
        self.kind = kind
        self.eos = 0 if kind == "bundled" else 2
        model = None if kind == "bundled" else WRITERS[kind](folder / "model.gguf")
        draft = BUNDLED_DRAFT if model is None else write_dense(folder / "draft.gguf", seed=11)
        self.scripted = SometimesRight(N_VOCAB)
        self.is_exact = IS_X86 and kind not in NEVER_EXACT
        options: dict[str, Any] = {"exact": True} if self.is_exact else {}
        self.plain = open_session(model, None, **options)
        # The first two are rarely right about random models; a planner might not draft at all.
        self.sessions = {
            "ngram": open_session(model, "ngram", spec_length=12, **options),
            "draft model": open_session(model, draft, spec_length=4, **options),
            "Python": open_session(model, self.scripted, **options),
        }

    def prompt(self, seed: int) -> list[int]:
        """Return one of the prompts, or tokens with repetitions."""
        if self.kind == "bundled":
            names = sorted(set(PROMPTS) - {"near the limit"})
            return self.plain.tokenize(PROMPTS[names[seed % len(names)]])
        rng = random.Random(seed)
        phrase = [rng.randrange(3, N_VOCAB - 1) for _ in range(rng.randrange(2, 12))]
        return [1, *(phrase * 20)][: rng.randrange(1, 60)]

    def compare(self, settings: Iterable[tuple[int, Setting]]) -> int:
        """Return how many tokens of each drafter were compared with plain decoding."""
        compared = 0
        drafted = dict.fromkeys(DRAFTERS, 0)
        accepted = dict.fromkeys(DRAFTERS, 0)
        for seed, setting in settings:
            prompt = self.prompt(seed)
            # No end token before the limit.
            options = setting | {"seed": seed, "max_tokens": N_TOKENS}
            options["logit_bias"] = {self.eos: -math.inf}
            expected = self.plain.generate(prompt, **options)
            assert expected.stats.exact or not self.is_exact
            self.scripted.coming = expected.tokens
            for name, session in self.sessions.items():
                generation = session.generate(prompt, **options)
                assert generation.tokens == expected.tokens, (name, seed, setting)
                assert generation.stats.drafter_errors == 0
                drafted[name] += generation.stats.drafted
                accepted[name] += generation.stats.accepted
                compared += len(generation.tokens)
        assert min(drafted.values()) > 0, drafted
        right = DRAFTERS if self.kind == "bundled" else ["Python"]
        assert min(accepted[name] for name in right) > 0, accepted
        return compared


@pytest.mark.parametrize("kind", KINDS)
def test_drafts_change_no_token_in_a_sample_of_settings(
    kind: str, tmp_path: Path, open_session: Open
) -> None:
    """The shuffled settings are distributed over the kinds; each kind gets three more."""
    shuffled = random.Random(0).sample(SETTINGS, len(SETTINGS))
    dealt = shuffled[KINDS.index(kind) :: len(KINDS)]
    more = random.Random(kind).sample(SETTINGS, 3)
    compared = Bench(kind, tmp_path, open_session).compare(enumerate(dealt + more))
    assert compared == (len(dealt) + 3) * len(DRAFTERS) * N_TOKENS


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_drafts_change_no_token_in_all_settings(
    kind: str, tmp_path: Path, open_session: Open
) -> None:
    runs = itertools.product(range(N_SEEDS), SETTINGS)
    compared = Bench(kind, tmp_path, open_session).compare(
        (index, setting) for index, (_, setting) in enumerate(runs)
    )
    assert compared == N_SEEDS * len(SETTINGS) * len(DRAFTERS) * N_TOKENS
    assert compared * len(KINDS) >= 50_000
