"""Kinds of models with different memories: small, random ones, decoded by llama.cpp.

Weights and KV memory are Q8_0, as in the exact configuration, except for parts that are float32 in
real files, too (routers, convolutions, states).
"""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest
from drafters import SometimesRight, Wrong
from random_model import N_VOCAB, WINDOW, WRITERS, write_dense
from session_options import EXACT_HERE, Open
from specllama import Generation, SpecSession

CUTTABLE = {"dense", "experts", "sliding window"}
RESTORED = {"recurrent", "hybrid"}
"""Kinds that can only be rewound to a saved state."""

BOUND = {"experts": 1e-4, "recurrent": 1e-4, "hybrid": 1e-4}
"""Largest difference of log-probabilities from a new session, for kinds with float weights that are
not exact; others are equal to the last bit. (Measured: equal everywhere.)"""


@pytest.fixture(scope="module", params=sorted(WRITERS))
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def model(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return WRITERS[kind](tmp_path_factory.mktemp("models") / "random.gguf")


def prompts(n: int) -> list[list[int]]:
    """Return token ids with repetitions, of lengths around the window and the batch."""
    rng = random.Random(7)
    out = []
    for length in (1, 5, WINDOW - 1, WINDOW + 1, 60, 150, 200)[:n]:
        phrase = [rng.randrange(3, N_VOCAB - 1) for _ in range(12)]
        out.append([1, *(phrase * (length // 12 + 1))][:length])
    return out


class Fresh:
    """Answers from a session that has not seen the prompt."""

    def __init__(self, session: SpecSession, kind: str) -> None:
        self.session = session
        self.bound = BOUND.get(kind, 0.0)

    def generate(self, prompt: list[int], **options: Any) -> Generation:
        self.session.generate([8], max_tokens=1)  # no common prefix with the next one
        return self.session.generate(prompt, **options)

    def check(self, prompt: list[int], found: Any) -> None:
        """Compare the log-probabilities of the token after a prompt, and of the twenty most
        likely."""
        generation = self.generate(prompt, max_tokens=1, logprobs=20, logit_bias={2: -math.inf})
        assert generation.stats.reused_tokens == 0
        expected = generation.logprobs[0]
        assert found.token == expected.token
        assert [token for token, _ in found.top] == [token for token, _ in expected.top]
        for (_, a), (_, b) in zip(found.top, expected.top, strict=True):
            assert abs(a - b) <= self.bound


@pytest.fixture
def open_session(open_session: Open, kind: str) -> Open:
    """Opens sessions; for experts, exact ones, because their float32 router gives other bits to a
    token decoded alone."""
    exact = {"exact": EXACT_HERE} if kind == "experts" else {}
    return lambda *arguments, **options: open_session(*arguments, **exact, **options)


@pytest.fixture
def fresh(model: Path, kind: str, open_session: Open) -> Fresh:
    return Fresh(open_session(model, None), kind)


@pytest.mark.parametrize("drafter", ["ngram", "model"])
def test_drafts_change_no_token_with_any_kind_of_memory(
    model: Path, open_session: Open, tmp_path: Path, drafter: str
) -> None:
    plain = open_session(model, None, n_batch=48)
    draft = write_dense(tmp_path / "draft.gguf", seed=11) if drafter == "model" else drafter
    session = open_session(model, draft, n_batch=48, spec_length=8)
    drafted = accepted = 0
    for prompt in prompts(7):
        for temperature in (0.0, 1.2):
            options: dict[str, Any] = {"max_tokens": 80, "temperature": temperature, "seed": 2}
            expected = plain.generate(prompt, **options).tokens
            generation = session.generate(prompt, **options)
            assert generation.tokens == expected, len(prompt)
            drafted += generation.stats.drafted
            accepted += generation.stats.accepted
    assert drafted > 100
    assert accepted > 0


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_partly_accepted_drafts_change_no_token(
    model: Path, open_session: Open, temperature: float
) -> None:
    """Every round is rewound to a position inside its batch."""
    plain = open_session(model, None, n_batch=48)
    drafter = SometimesRight(N_VOCAB)
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


def test_logits_after_a_rejected_draft_are_those_of_a_new_session(
    model: Path, open_session: Open, fresh: Fresh
) -> None:
    drafter = SometimesRight(N_VOCAB)
    session = open_session(model, drafter, spec_length=6)
    options: dict[str, Any] = {"max_tokens": 50, "logprobs": 20, "logit_bias": {2: -math.inf}}
    checked = 0
    for prompt in prompts(6)[2:]:
        drafter.coming = fresh.generate(prompt, **options).tokens
        generation = session.generate(prompt, **options)
        assert generation.tokens == drafter.coming
        at = 0
        for drafted, accepted in generation.stats.by_round[:-1]:
            at += accepted + 1
            if accepted < drafted:
                fresh.check([*prompt, *generation.tokens[:at]], generation.logprobs[at])
                checked += 1
    assert checked > 20


def test_memories_without_rewind_redecode_few_tokens(
    model: Path, kind: str, open_session: Open
) -> None:
    """A memory that cannot be rewound decodes again in some rounds, which have no draft."""
    session = open_session(model, Wrong(), spec_length=4)
    rounds = session.generate([1, 5, 6], max_tokens=80, logit_bias={2: -math.inf}).stats.by_round
    longest = max(
        len(list(group))
        for drafting, group in itertools.groupby(rounds[1:-1], lambda r: r[0] > 0)
        if drafting
    )
    if kind in RESTORED:
        assert longest <= 5
    else:
        assert longest == len(rounds) - 2


@pytest.mark.parametrize(
    ("n_batch", "longest"),
    # As many as snapshots; in too small a batch one, after a saved state; then no draft.
    [(512, 16), (10, 8), (3, 1), (2, 1), (1, 0)],
)
def test_drafts_are_at_most_as_long_as_the_number_of_snapshots(
    tmp_path: Path, open_session: Open, n_batch: int, longest: int
) -> None:
    model = WRITERS["hybrid with snapshots"](tmp_path / "random.gguf")
    expected = open_session(model, None).generate([1, 5, 6], max_tokens=100)
    session = open_session(model, Wrong(), spec_length=64, n_batch=n_batch)
    generation = session.generate([1, 5, 6], max_tokens=100)
    assert generation.tokens == expected.tokens
    assert max(drafted for drafted, _ in generation.stats.by_round) == longest


def test_the_next_prompt_gives_the_tokens_of_a_new_session(
    model: Path, kind: str, open_session: Open, fresh: Fresh
) -> None:
    """Also if the common prefix is shorter than what the window keeps."""
    options: dict[str, Any] = {"max_tokens": 40, "logprobs": 20, "logit_bias": {2: -math.inf}}
    session = open_session(model, n_batch=48, spec_length=8)
    long = prompts(7)[-1]
    session.generate(long, max_tokens=60)
    for keep in (199, 190, 150, 100, WINDOW, 10, 1):
        prompt = [*long[:keep], 5, 6, 7]
        generation = session.generate(prompt, **options)
        assert generation.tokens == fresh.generate(prompt, **options).tokens, keep
        fresh.check(prompt, generation.logprobs[0])
        if kind not in CUTTABLE:  # a state was saved four tokens before the end of `long`
            assert generation.stats.reused_tokens == (196 if keep >= 196 else 0)
        elif kind != "sliding window":
            assert generation.stats.reused_tokens >= keep
        elif keep <= WINDOW:  # it has left the window, so all is decoded again
            assert generation.stats.reused_tokens == 0
        session.generate(long, max_tokens=60)


def test_a_continued_conversation_is_reused(
    model: Path, kind: str, open_session: Open, fresh: Fresh
) -> None:
    """The generated text stays in the memory, also in one that cannot be rewound."""
    session = open_session(model)
    tokens = prompts(5)[-1]
    for _ in range(3):
        generation = session.generate(tokens, max_tokens=20)
        assert generation.tokens == fresh.generate(tokens, max_tokens=20).tokens
        tokens = [*tokens, *generation.tokens, 9, 10]
    reused = session.generate(tokens, max_tokens=1).stats.reused_tokens
    # All but the last token, which was not decoded.
    held = len(tokens) - 3
    if kind in RESTORED:
        assert held - 9 <= reused <= held  # or less: up to the saved state
    else:
        assert reused == held


def test_a_repeated_turn_is_reused(model: Path, open_session: Open, fresh: Fresh) -> None:
    session = open_session(model, None)
    tokens = prompts(5)[-1]
    options: dict[str, Any] = {"max_tokens": 20, "logprobs": 20, "logit_bias": {2: -math.inf}}
    tokens = [*tokens, *session.generate(tokens, **options).tokens]
    for turn in ([9, 10, 11], [12, 13], [14]):
        generation = session.generate([*tokens, *turn], **options)
        assert generation.stats.reused_tokens >= len(tokens) - 1
        fresh.check([*tokens, *turn], generation.logprobs[0])


def test_a_text_after_a_stop_string_is_generated_as_in_a_new_session(
    model: Path, open_session: Open, fresh: Fresh
) -> None:
    session = open_session(model, spec_length=8)
    for prompt in prompts(6):
        whole = session.generate(prompt, max_tokens=60)
        stop = whole.text[len(whole.text) // 3 :][:4]
        stopped = session.generate(prompt, max_tokens=60, stop=stop)
        assert stopped.finish_reason == "stop"
        after = [*prompt, *stopped.tokens, 5]
        again = session.generate(after, max_tokens=1, logprobs=20, logit_bias={2: -math.inf})
        fresh.check(after, again.logprobs[0])
        assert session.generate(prompt, max_tokens=60).tokens == whole.tokens
