"""The choice rule, compared with a numpy reference and softmax, with every drafter."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from processes import HAS_ASAN
from prompts import PROMPTS, most_tokens
from reference_sampler import OFF, chi_square, kept_probabilities, reference_choice, sampler
from specllama import ArgumentError, Drafter, SpecSession, _core
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]


def some_options(rng: np.random.Generator, n_vocab: int) -> dict[str, Any]:
    def maybe(value: Any, off: Any) -> Any:
        return value if rng.random() < 0.5 else off

    return OFF | {
        "temperature": maybe(float(rng.choice([0.3, 0.7, 1.0, 1.5])), 0.0),
        "top_n_sigma": maybe(float(rng.uniform(0.2, 3)), 0.0),
        "top_k": maybe(int(rng.integers(1, n_vocab + 5)), 0),
        "typical_p": maybe(float(rng.uniform(0.05, 1)), 1.0),
        "top_p": maybe(float(rng.uniform(0.05, 1)), 1.0),
        "min_p": maybe(float(rng.uniform(0, 1)), 0.0),
        "xtc_probability": maybe(float(rng.choice([0.5, 1])), 0.0),
        "xtc_threshold": float(rng.uniform(0, 0.5)),
        "repeat_penalty": maybe(float(rng.uniform(0.5, 2)), 1.0),
        "frequency_penalty": maybe(float(rng.uniform(-1, 1)), 0.0),
        "presence_penalty": maybe(float(rng.uniform(-1, 1)), 0.0),
        "repeat_last_n": int(rng.choice([-1, 0, 3, 64])),
        "dry_multiplier": maybe(float(rng.uniform(0.1, 3)), 0.0),
        "dry_base": float(rng.uniform(1, 2)),
        "dry_allowed_length": int(rng.integers(1, 4)),
        "dry_penalty_last_n": int(rng.choice([-1, 0, 9, 64])),
        "dry_sequence_breakers": maybe(["\n", "ab"], []),
        "logit_bias": maybe([(0, 2.0), (1, -math.inf)], []),
        "seed": int(rng.integers(0, 2**63)) * 2 + 1,
    }


def test_sampled_choices_equal_those_of_the_reference() -> None:
    rng = np.random.default_rng(1)
    for case in range(2000):
        n_vocab = int(rng.choice([2, 5, 33, 300]))
        logits = rng.normal(0, 3, n_vocab).astype(np.float32)
        context = rng.integers(0, n_vocab, rng.integers(1, 90)).tolist()
        texts = [rng.choice([b"a", b"b", b"ba", b"x\ny", b"\n", b""]) for _ in range(n_vocab)]
        options = some_options(rng, n_vocab)
        expected = reference_choice(logits, context, options, texts)
        found = sampler(n_vocab, texts, **options).choose(logits, context)
        assert found == expected, (case, options)


def test_greedy_chooses_the_first_of_equal_logits() -> None:
    for n in (1, 31, 32, 33, 1000):
        logits = np.zeros(n, np.float32)
        assert sampler(n).choose(logits, [0]) == 0
        logits[n - 1] = 1
        assert sampler(n).choose(logits, [0]) == n - 1


def test_rows_and_contexts_of_another_size_are_refused() -> None:
    one = sampler(8, temperature=0.0, repeat_penalty=1.1, logit_bias=[(7, 1.0)])
    with pytest.raises(ArgumentError, match="must be 8 logits, not 5"):
        one.choose(np.zeros(5, np.float32), [0])
    with pytest.raises(ArgumentError, match="context holds token 2000000000 of 8"):
        one.choose(np.zeros(8, np.float32), [2_000_000_000])
    with pytest.raises(ArgumentError, match="first and count"):
        one.choose_many(np.zeros(8, np.float32), -5, 2)
    with pytest.raises(ArgumentError, match="must be 8 logits, not 9"):
        one.speculate_many(np.zeros(8, np.float32), np.zeros(9, np.float32), 1, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only: limits memory")
@pytest.mark.skipif(HAS_ASAN, reason="ASan reserves more addresses")
def test_a_long_penalty_window_allocates_nothing_in_advance() -> None:
    limited = """if True:
        import resource
        from specllama import _core
        from specllama.requests.options import sampling_options
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        _core.Sampler(sampling_options(repeat_last_n=2**31 - 1, repeat_penalty=1.1), 8)
    """
    subprocess.run([sys.executable, "-c", limited], check=True)


def test_nan_rows_and_empty_rows_are_reported() -> None:
    for temperature in (0.0, 1.0):
        for at in (0, 35, 99):
            logits = np.zeros(100, np.float32)
            logits[at] = np.nan
            assert sampler(100, temperature=temperature).choose(logits, [0]) == -1
        nothing = np.full(100, -np.inf, np.float32)
        assert sampler(100, temperature=temperature).choose(nothing, [0]) == -2


N_DRAWS = 200_000


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"temperature": 1.5, "top_k": 12},
        {"temperature": 1.0, "top_p": 0.9},
        {"temperature": 0.8, "min_p": 0.05},
        {"temperature": 1.0, "top_n_sigma": 1.0},
        {"temperature": 1.0, "typical_p": 0.7},
    ],
)
@pytest.mark.parametrize("over", ["positions", "seeds"])
def test_draws_follow_softmax(options: dict[str, Any], over: str) -> None:
    logits = np.random.default_rng(2).normal(0, 2, 40).astype(np.float32)
    expected = kept_probabilities(logits, [], OFF | options)
    if over == "positions":
        draws = sampler(40, seed=11, **options).choose_many(logits, 1, N_DRAWS)
    else:  # consecutive small seeds at one position
        n = N_DRAWS // 10
        draws = np.array([sampler(40, seed=s, **options).choose(logits, [0]) for s in range(n)])
    counts = np.bincount(draws, minlength=40)
    assert counts[expected == 0].sum() == 0
    kept = expected > 0
    statistic, limit = chi_square(counts[kept], expected[kept] * len(draws))
    assert statistic < limit


def test_the_chi_square_test_detects_a_slightly_wrong_temperature() -> None:
    """Draws from a slightly different distribution fail the test."""
    logits = np.random.default_rng(2).normal(0, 2, 40).astype(np.float32)
    draws = sampler(40, temperature=1.0).choose_many(logits, 1, N_DRAWS)
    wrong = kept_probabilities(logits, [], OFF | {"temperature": 1.03})
    statistic, limit = chi_square(np.bincount(draws, minlength=40), wrong * N_DRAWS)
    assert statistic > limit


def test_draws_follow_softmax_over_a_large_vocabulary() -> None:
    n_vocab, n_draws, n_bins = 131_072, 3_000, 64
    logits = np.random.default_rng(3).normal(0, 3, n_vocab).astype(np.float32)
    p = np.exp(logits.astype(np.float64) - logits.max())
    p /= p.sum()
    draws = sampler(n_vocab, temperature=1.0, seed=3).choose_many(logits, 1, n_draws)
    bins = np.arange(n_vocab) % n_bins
    observed = np.bincount(bins[draws], minlength=n_bins)
    expected = np.bincount(bins, weights=p, minlength=n_bins) * n_draws
    statistic, limit = chi_square(observed, expected)
    assert statistic < limit


@pytest.mark.parametrize("lag", [1, 2, 64])
def test_draws_at_different_positions_and_seeds_are_independent(lag: int) -> None:
    n_vocab = 8
    logits = np.zeros(n_vocab, np.float32)
    one = sampler(n_vocab, temperature=1.0, seed=5).choose_many(logits, 1, N_DRAWS)
    other = sampler(n_vocab, temperature=1.0, seed=5 + lag).choose_many(logits, 1, N_DRAWS)
    for a, b in ((one[:-lag], one[lag:]), (one, other)):
        table = np.bincount(a * n_vocab + b, minlength=n_vocab**2)
        expected = np.full(n_vocab**2, len(a) / n_vocab**2)
        statistic, limit = chi_square(table, expected)
        assert statistic < limit


def test_noise_is_finite_for_all_bits() -> None:
    for bits in (0, 1, 2**11 - 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1):
        assert math.isfinite(_core.gumbel(bits))
    assert _core.gumbel(2**64 - 1) > 30
    assert _core.gumbel(0) < -3


@pytest.mark.parametrize("n_vocab", [1, 7, 1000, 128_000])
def test_probabilities_are_those_of_softmax(n_vocab: int) -> None:
    rng = np.random.default_rng(n_vocab)
    for scale in (0.1, 3, 30):
        logits = rng.normal(0, scale, n_vocab).astype(np.float32)
        if n_vocab > 1:
            logits[0] = -np.inf
        weights = np.exp(logits.astype(np.float64) - logits.max())
        for token in (int(logits.argmax()), n_vocab // 2):
            expected = weights[token] / weights.sum()
            assert _core.probability(logits, token) == pytest.approx(expected, rel=1e-5, abs=1e-37)
    with pytest.raises(ArgumentError, match="Token -1 is out of range"):
        _core.probability(logits, -1)


# The drafter does not matter, in the exact configuration.

TRUNCATIONS: list[dict[str, Any]] = [
    {},
    {"top_k": 40},
    {"top_p": 0.9},
    {"min_p": 0.05},
    {"repeat_penalty": 1.1, "frequency_penalty": 0.2, "presence_penalty": 0.1},
]
SETTINGS = [
    {"temperature": t, **cut}
    for t, cut in itertools.product([0.0, 0.3, 0.7, 1.0, 1.5], TRUNCATIONS)
]


class Guesser(Drafter):
    """Repeats the token four positions earlier."""

    def propose(self, sequence: int, tokens: NDArray[np.int32], max_tokens: int) -> Iterable[int]:
        return itertools.islice(itertools.cycle(tokens[-4:].tolist()), max_tokens)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_drafts_change_no_sampled_token(open_session: Open, seed: int) -> None:
    plain = open_session(draft=None)
    drafting = [
        open_session(spec_length=4),
        open_session(spec_length=16),
        open_session(draft=Guesser(), spec_length=3),
    ]
    accepted = 0
    for setting, (name, prompt) in zip(SETTINGS, itertools.cycle(PROMPTS.items()), strict=False):
        n = most_tokens(plain, prompt, 80)
        expected = plain.generate(prompt, max_tokens=n, seed=seed, **setting)
        assert expected.stats.seed == seed
        for session in drafting:
            generation = session.generate(prompt, max_tokens=n, seed=seed, **setting)
            assert generation.tokens == expected.tokens, (name, setting)
            accepted += generation.stats.accepted
    assert accepted > 300


def test_a_resumed_text_continues_with_the_same_tokens(open_session: Open) -> None:
    session = open_session()
    tokens = session.tokenize(PROMPTS["module"])
    options: dict[str, Any] = {"temperature": 0.8, "seed": 3}
    whole = session.generate(tokens, max_tokens=60, **options).tokens
    half = session.generate(tokens, max_tokens=30, **options).tokens
    rest = session.generate(tokens + half, max_tokens=30, **options).tokens
    assert half + rest == whole


def test_a_seed_repeats_the_text_and_is_reported(open_session: Open) -> None:
    session = open_session()

    def generate(seed: int | None) -> tuple[list[int], int]:
        generation = session.generate("import", max_tokens=30, temperature=1.0, seed=seed)
        return generation.tokens, generation.stats.seed

    assert generate(1) == generate(1)
    assert generate(1)[0] != generate(2)[0]
    tokens, seed = generate(None)
    assert generate(None)[1] != seed
    assert generate(seed)[0] == tokens


def test_tokens_with_a_bias_of_minus_infinity_are_not_generated(open_session: Open) -> None:
    session = open_session()
    free = session.generate(PROMPTS["module"], max_tokens=40)
    forbidden = dict.fromkeys(free.tokens[:10], -math.inf)
    for temperature in (0.0, 1.0):
        tokens = session.generate(
            PROMPTS["module"], max_tokens=40, temperature=temperature, logit_bias=forbidden
        ).tokens
        assert not set(tokens) & set(forbidden)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("temperature", -0.1, "temperature must be 0 or more .0: greedy., not -0.1"),
        ("temperature", math.nan, "temperature must be"),
        ("temperature", math.inf, "temperature must be"),
        ("temperature", "hot", "temperature must be a number"),
        ("temperature", True, "temperature must be a number"),
        ("top_k", -2, "top_k must be -1 or more .0: off; -1: off., not -2"),
        ("top_k", 1.5, "top_k must be a whole number"),
        ("top_p", -0.1, "top_p must be from 0 to 1"),
        ("top_p", 1.1, "top_p must be"),
        ("top_p", math.nan, "top_p must be"),
        ("min_p", -0.1, "min_p must be from 0"),
        ("min_p", 1.1, "min_p must be"),
        ("repeat_penalty", 0.0, "repeat_penalty must be more than 0"),
        ("repeat_penalty", math.inf, "repeat_penalty must be"),
        ("frequency_penalty", math.nan, "frequency_penalty must be a finite number"),
        ("presence_penalty", -math.inf, "presence_penalty must be a finite number"),
        ("repeat_last_n", -2, "repeat_last_n must be"),
        ("xtc_probability", 1.5, "xtc_probability must be from 0"),
        ("typical_p", 2, "typical_p must be from 0 to 1"),
        ("dry_base", 0.5, "dry_base must be 1 or more, not 0.5"),
        ("dry_allowed_length", 0, "dry_allowed_length must be 1 or more, not 0"),
        ("dry_sequence_breakers", [""], "dry_sequence_breakers must be at most 64 texts"),
        ("dry_sequence_breakers", ["a"] * 65, "dry_sequence_breakers must be at most 64 texts"),
        ("dry_sequence_breakers", ["a" * 65], "each of 1 to 64 bytes"),
        ("dry_sequence_breakers", 3, "dry_sequence_breakers must be a str or several"),
        ("logit_bias", {4096: 1.0}, "logit_bias names token 4096; the model has 4096 tokens"),
        ("logit_bias", {-1: 1.0}, "logit_bias names token -1"),
        ("logit_bias", {1: math.nan}, "logit_bias\\[1\\] must be at most 1e30"),
        ("logit_bias", {1: math.inf}, "logit_bias\\[1\\] must be at most 1e30"),
        ("logit_bias", {"a": 1.0}, "token id of logit_bias must be a whole number"),
        ("logit_bias", [1], "logit_bias must map"),
        ("seed", -2, "seed must be from -1 to"),
        ("seed", 2**64, "seed must be from -1 to"),
        ("seed", 1.5, "seed must be a whole number"),
        ("echo", "no", "echo must be True or False, not 'no'"),
        ("trace", 1, "trace must be True or False, not 1"),
    ],
)
def test_bad_sampling_options_are_refused(
    open_session: Open, option: str, value: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session().generate("x", **{option: value})


@pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["plain", "ngram", "model"])
@pytest.mark.parametrize("acceptance", ["coupled", "rejection"])
@pytest.mark.parametrize(
    "penalty",
    [{"presence_penalty": -1e39}, {"frequency_penalty": 1e300}, {"repeat_penalty": 1e-300}],
    ids=str,
)
def test_extreme_penalties_give_finite_logprobs(
    open_session: Open, penalty: dict[str, float], acceptance: str, draft: Any
) -> None:
    session = open_session(draft=draft, spec_length=4)
    for seed in range(5):
        generation = session.generate(
            [60, 61, 62],
            max_tokens=30,
            temperature=1.0,
            seed=seed,
            acceptance=acceptance,
            logprobs=2,
            processed_logprobs=True,
            logit_bias={61: -math.inf},
            **penalty,
        )
        assert generation.stats.generated_tokens == 30
        assert 61 not in generation.tokens
        tops = [logprob for one in generation.logprobs for _, logprob in one.top]
        assert len(tops) >= 30
        assert all(map(math.isfinite, tops))
