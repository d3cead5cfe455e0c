"""Speculation as a whole: accept, reject, rewind, and the results."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prompts import PROMPTS, most_tokens
from random_model import write_dense
from reference_sampler import OFF, kept_probabilities, sampler
from session_options import Open
from specllama import ArgumentError, ModelError
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

SOME = ("module", "english", "json", "counting", "accents", "one token")


def test_greedy_verification_accepts_and_rejects(open_session: Open) -> None:
    plain, speculative = open_session(draft=None), open_session(draft=BUNDLED_DRAFT)
    for name in SOME:
        expected = plain.generate(PROMPTS[name], max_tokens=60)
        generation = speculative.generate(PROMPTS[name], max_tokens=60)
        assert generation.tokens == expected.tokens, name
        assert 0 < generation.stats.accepted < generation.stats.drafted


def test_rejection_sampling_accepts_at_the_expected_rate() -> None:
    rng = np.random.default_rng(4)
    options: dict[str, Any] = {"temperature": 1.0, "acceptance": "rejection"}
    for _ in range(5):
        target, draft = rng.normal(0, 1.5, (2, 12)).astype(np.float32)
        p, q = (kept_probabilities(x, [], OFF | options) for x in (target, draft))
        both = sampler(12, **options).speculate_many(target, draft, 1, 40_000)
        for token in np.flatnonzero(q > 0.05):
            drafted = both[both[:, 0] == token]
            rate = (drafted[:, 1] == token).mean()
            expected = min(1.0, p[token] / q[token])
            error = np.sqrt(expected * (1 - expected) / len(drafted))
            assert abs(rate - expected) <= 4 * error + 1e-9


def test_memory_after_rejected_drafts_holds_only_accepted_tokens(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT)
    tokens = session.tokenize(PROMPTS["english"])
    generation = session.generate(tokens, max_tokens=40)
    assert generation.stats.accepted < generation.stats.drafted
    longer = [*tokens, *generation.tokens, 5]
    again = session.generate(longer, max_tokens=20, logprobs=3)
    # All but the last token, which was not decoded.
    assert again.stats.reused_tokens == len(longer) - 2
    fresh = open_session(draft=None).generate(longer, max_tokens=20, logprobs=3)
    assert again.tokens == fresh.tokens
    for a, b in zip(again.logprobs, fresh.logprobs, strict=True):
        assert (a.logprob, a.top) == (b.logprob, b.top)


def test_a_round_of_several_tokens_streams_each_as_a_chunk(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT)
    generation = session.generate(PROMPTS["module"], max_tokens=60)
    chunks = list(session.stream(PROMPTS["module"], max_tokens=60))
    assert [chunk.token for chunk in chunks] == generation.tokens
    assert sum(chunk.from_draft for chunk in chunks) == generation.stats.accepted
    assert max(accepted for _, accepted in generation.stats.by_round) >= 3
    assert generation.stats.rounds < 60


@pytest.mark.parametrize("draft", ["ngram", BUNDLED_DRAFT])
def test_planned_drafts_change_no_greedy_token(
    open_session: Open, open_planned: Open, draft: Any
) -> None:
    """Measured times decide how much is drafted."""
    plain, planned = open_session(draft=None), open_planned(draft=draft)
    drafted = 0
    for name, prompt in PROMPTS.items():
        n = most_tokens(plain, prompt, 150)
        generation = planned.generate(prompt, max_tokens=n)
        assert generation.tokens == plain.generate(prompt, max_tokens=n).tokens, name
        assert generation.stats.exact
        drafted += generation.stats.drafted
    assert drafted > 0


def test_planned_drafts_change_no_sampled_token_and_stats_add_up(open_session: Open) -> None:
    plain = open_session(draft=None)
    planned = open_session(draft=BUNDLED_DRAFT, spec_length="auto")
    for seed, name in enumerate(SOME):
        options: dict[str, Any] = {"max_tokens": 80, "temperature": 0.7, "top_k": 40, "seed": seed}
        generation = planned.generate(PROMPTS[name], **options)
        assert generation.tokens == plain.generate(PROMPTS[name], **options).tokens, name
        stats = generation.stats
        assert stats.acceptance_rate == (stats.accepted / stats.drafted if stats.drafted else 0)
        assert sum(drafted for drafted, _ in stats.by_drafter.values()) == stats.drafted
        assert sum(accepted for _, accepted in stats.by_drafter.values()) == stats.accepted


def test_matches_draft_next_to_a_draft_model(open_planned: Open) -> None:
    """The draft model is the target itself, which never pays. Matches and n-grams still draft."""
    session = open_planned(draft=BUNDLED_MODEL)
    drafted = 0
    for prompt in itertools.islice(PROMPTS.values(), 12):
        by_drafter = session.generate(prompt, max_tokens=120).stats.by_drafter
        drafted += by_drafter["match"][0] + by_drafter["ngram"][0]
    assert drafted > 0


def test_cascade_false_drafts_with_the_model_alone(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT, spec_length="auto", cascade=False)
    generation = session.generate(PROMPTS["module"], max_tokens=60, trace=True)
    assert (
        generation.tokens
        == open_session(draft=None).generate(PROMPTS["module"], max_tokens=60).tokens
    )
    assert generation.trace is not None
    drafted = [one.drafter for each in generation.trace.rounds for one in each.draft]
    assert set(drafted) <= {"model"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"spec_length": 0}, ArgumentError, "spec_length must be from 1 to 64, not 0"),
        ({"spec_length": "long"}, ArgumentError, "must be a whole number or \"auto\", not 'long'"),
        (
            {"spec_tree": "on"},
            ArgumentError,
            'must be a whole number or "auto" or "off", not \'on\'',
        ),
        ({"spec_length": 2.5}, ArgumentError, "spec_length must be a whole number"),
        ({"draft": ""}, ArgumentError, "draft is empty; give a path"),
        ({"draft": "no/such.gguf"}, ModelError, "There is no file no/such.gguf"),
        ({"draft": 7}, ArgumentError, "draft must be"),
        ({"exact": "always"}, ArgumentError, 'exact must be True, False or "auto"'),
        ({"n_ctx": -2}, ArgumentError, "n_ctx must be"),
    ],
)
def test_bad_speculation_options_are_refused(
    open_session: Open, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_session(**options)


def test_an_embedding_model_is_refused_as_draft(tmp_path: Path, open_session: Open) -> None:
    draft = write_dense(tmp_path / "draft.gguf", **{"attention.causal": False})
    with pytest.raises(ModelError, match="it is an embedding model"):
        open_session(write_dense(tmp_path / "target.gguf"), draft)


def test_a_draft_larger_than_its_target_gives_a_warning(
    open_session: Open, bundled_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = open_session(BUNDLED_DRAFT, bundled_model)
    assert "is larger than the model it drafts for" in capfd.readouterr().err
    assert session.generate("import", max_tokens=5).stats.generated_tokens == 5
