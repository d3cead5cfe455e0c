"""Rejection sampling in sessions whose target and draft model are unrelated."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray
from random_model import EOS, N_VOCAB, write_dense
from reference_sampler import OFF, follows, kept_probabilities
from session_options import EXACT_HERE, believe_wide_decodes_are_free
from specllama import ArgumentError, SpecSession
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]
Probabilities = NDArray[np.float64]
REJECTION: dict[str, Any] = {"temperature": 1.0, "acceptance": "rejection"}


class Judge:
    """Computes p from llama-cpp-python's logits with numpy."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.options = OFF | {k: v for k, v in options.items() if k in OFF and k != "grammar"}
        self.llama = llama_cpp.Llama(
            str(path),
            n_ctx=256,
            type_k=llama_cpp.GGML_TYPE_Q8_0,
            type_v=llama_cpp.GGML_TYPE_Q8_0,
            flash_attn=True,
            n_gpu_layers=0,
            n_threads=1,
            logits_all=True,
            verbose=False,
        )

    def p(self, tokens: list[int], allowed: set[int] | None = None) -> Probabilities:
        self.llama.reset()
        self.llama.eval(tokens)
        logits = np.array(self.llama.scores[len(tokens) - 1], np.float32)
        if allowed is not None:
            logits[[t for t in range(len(logits)) if t not in allowed]] = -np.inf
        return kept_probabilities(logits, tokens, self.options)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return write_dense(folder / "target.gguf"), write_dense(folder / "draft.gguf", seed=9)


PROMPT = [1, 41, 55, 5, 41, 25, 6, 41, 49, 41]  # 55, 25 and 49 are likely to follow again
WORDS = range(0, 10, 2)
SETUPS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "model": ("model", {}, {}),
    "model, cut": ("model", {}, {"temperature": 0.7, "top_k": 20}),
    "model, p_min": ("model", {"draft_p_min": 0.2}, {}),
    "model, other temperature": ("model", {"draft_temperature": 0.6, "draft_top_k": 10}, {}),
    "model, grammar": ("model", {}, {"grammar": 'root ::= (" w" [02468])+'}),
    "model, tree": ("model", {"spec_tree": 3}, {}),
    "model, tree, cut": ("model", {"spec_tree": 4}, {"temperature": 0.7, "top_k": 20}),
    "model, tree, grammar": (
        "model",
        {"spec_tree": 3, "draft_p_min": 0.02},
        {"grammar": 'root ::= (" w" [02468])+'},
    ),
    "ngram": ("ngram", {"ngram_order": 2}, {}),
    "ngram, tree": ("ngram", {"ngram_order": 2, "spec_tree": 3}, {}),
    "ngram, drawn": ("ngram", {"ngram_order": 2, "ngram_draw": True}, {}),
}


@pytest.mark.parametrize("setup", SETUPS)
def test_texts_with_rejection_sampling_follow_the_target_distribution(
    setup: str, pair: tuple[Path, Path], open_session: Open
) -> None:
    """First tokens, and second tokens after each of the most likely first ones."""
    who, session_options, options = SETUPS[setup]
    options = {"temperature": 1.5, "acceptance": "rejection"} | options
    target, draft = pair
    session = open_session(
        target,
        draft if who == "model" else who,
        **({"spec_length": 3, "n_ctx": 64} | session_options),
    )
    texts, drafted, accepted = [], 0, 0
    for seed in range(4_000):
        generation = session.generate(PROMPT, max_tokens=5, seed=seed, **options)
        texts.append(generation.tokens)
        drafted += generation.stats.drafted
        accepted += generation.stats.accepted
    assert accepted > 50
    assert drafted > accepted

    judge = Judge(target, options)
    allowed = None
    if "grammar" in options:
        allowed = {3 + word for word in WORDS}
    first = np.array([tokens[0] if tokens else 2 for tokens in texts])
    assert follows(first, judge.p(PROMPT, allowed))
    n_tested = 0
    for token in np.argsort(-np.bincount(first, minlength=N_VOCAB))[:20]:
        seconds = [t[1] if len(t) > 1 else 2 for t in texts if t and t[0] == token]
        if len(seconds) < 40:
            continue
        after = None if allowed is None else allowed | {2}
        assert follows(np.array(seconds), judge.p([*PROMPT, int(token)], after)), token
        n_tested += 1
    assert n_tested >= 2


def test_rejection_accepts_more_than_coupled(open_session: Open) -> None:
    session = open_session(draft=BUNDLED_DRAFT)

    def rate(acceptance: str) -> float:
        drafted = accepted = 0
        for seed in range(30):
            stats = session.generate(
                "def close(self):",
                max_tokens=60,
                temperature=1.0,
                seed=seed,
                acceptance=acceptance,
            ).stats
            drafted, accepted = drafted + stats.drafted, accepted + stats.accepted
        return accepted / drafted

    assert rate("rejection") > rate("coupled")


def test_drawn_ngrams_are_accepted_more_often(open_session: Open) -> None:
    """With two likely tokens, sum min(p, q) is larger than p of the most frequent one."""
    prompt = "0 1 1 0 1 0 0 0 1 1 1 0 1 0 1 1 0 0 1 0 0 1 0 1 1 1 0 1 1 0 0 1 0" * 4

    def rate(draw: bool) -> float:
        session = open_session(ngram_draw=draw, ngram_order=3)
        bias = {session.tokenize(digit, add_special=False)[-1]: 8.0 for digit in (" 0", " 1")}
        options = REJECTION | {"max_tokens": 40, "logit_bias": bias}
        drafted = accepted = 0
        for seed in range(120):
            stats = session.generate(prompt, seed=seed, **options).stats
            drafted, accepted = drafted + stats.drafted, accepted + stats.accepted
        return accepted / drafted

    assert rate(True) > rate(False)


def test_verification_does_not_depend_on_the_drawn_token(
    open_session: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner decides on one token, although one of the two tokens that may be drawn continues
    with a long copy in the text, and the other does not."""
    monkeypatch.setenv("SPECLLAMA_CACHE", str(tmp_path))
    options: dict[str, Any] = {"spec_length": "auto", "n_threads": 1, "ngram_draw": True}
    with open_session(**options) as session:
        session.generate([60], max_tokens=2)
    believe_wide_decodes_are_free(tmp_path)
    session = open_session(ngram_order=2, **options)
    copied, other = [*range(70, 110)], [*range(110, 150)]
    prompt = [60, 61, 62, *copied]
    for token in other:
        prompt += [61, 63, token] if token % 2 else [token]
    bias = dict.fromkeys((61, 62, 63), 12.0)
    lengths = []
    for seed in range(20):
        generation = session.generate(
            [*prompt, 61],
            max_tokens=30,
            temperature=1.0,
            acceptance="rejection",
            logit_bias=bias,
            seed=seed,
            trace=True,
        )
        assert generation.trace is not None
        drafts = [one.draft for one in generation.trace.rounds if one.draft]
        lengths += [len(draft) for draft in drafts if draft[0].drafter == "ngram"]
    assert len(lengths) > 10
    assert set(lengths) == {1}


def test_the_acceptance_rule_changes_no_plain_text(open_session: Open) -> None:
    session = open_session(draft=None)
    options: dict[str, Any] = {"max_tokens": 50, "temperature": 0.9, "seed": 6}
    coupled = session.generate("import os", **options)
    assert session.generate("import os", acceptance="rejection", **options).tokens == coupled.tokens


def test_rejection_sampling_is_repeatable_in_a_session(open_session: Open) -> None:
    for draft in ("ngram", BUNDLED_DRAFT):
        session = open_session(draft=draft)
        options: dict[str, Any] = {"max_tokens": 80, "seed": 6, **REJECTION}
        first = session.generate("import os", **options)
        session.generate("class A:", max_tokens=5)
        assert session.generate("import os", **options).tokens == first.tokens


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acceptance": "always"}, 'acceptance must be "coupled" or "rejection", not \'always\''),
        ({"acceptance": None}, "acceptance must be"),
        ({"lenience": 0.5}, 'lenience requires the acceptance rule "rejection"'),
        ({"acceptance": "rejection", "lenience": 0.0}, "lenience must be more than 0"),
        ({"acceptance": "rejection", "lenience": 1.5}, "lenience must be more than 0"),
        ({"acceptance": "rejection", "lenience": math.nan}, "lenience must be"),
        ({"acceptance": "rejection", "lenience": "some"}, "lenience must be a number"),
    ],
)
def test_bad_acceptance_options_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    session = open_session()
    with pytest.raises(ArgumentError, match=message):
        session.generate("import os", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draft_temperature": -1.0}, "draft_temperature must be 0 or more, not -1"),
        ({"draft_temperature": "hot"}, "draft_temperature must be a number"),
        ({"draft_top_k": -2}, "draft_top_k must be -1 or more, not -2"),
        ({"draft_top_p": -0.1}, "draft_top_p must be from 0 to 1"),
        ({"draft_min_p": 2.0}, "draft_min_p must be from 0"),
    ],
)
def test_bad_options_of_drawn_drafts_are_refused(
    open_session: Open, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        open_session(draft=BUNDLED_DRAFT, **options)


def test_a_draft_model_that_draws_for_a_greedy_target_fits_the_batch(tmp_path: Path) -> None:
    """Only the draft model draws, and drawn drafts are verified whole. So a round has no
    alternatives, which would not fit into the batch."""
    model = write_dense(tmp_path / "target.gguf", n_layers=24)
    draft = write_dense(tmp_path / "draft.gguf", n_layers=1)  # cheap enough to be tried
    small: dict[str, Any] = {
        "exact": EXACT_HERE, "n_threads": 1, "n_gpu_layers": 0, "n_ctx": 256, "n_batch": 8,
    }  # fmt: skip
    asked: dict[str, Any] = {"prompt": [1, 5, 6], "max_tokens": 100, "logit_bias": {EOS: -math.inf}}
    drawing: dict[str, Any] = {"cascade": False, "spec_tree": 4, "draft_temperature": 2.0}
    with SpecSession(model, None, **small) as plain:
        expected = plain.generate(**asked).tokens
    drafted = 0
    for _ in range(5):  # a decode that is disturbed while timed prevents drafts
        with SpecSession(model, draft, **drawing, **small) as session:
            found = session.generate(acceptance="rejection", **asked)
        assert found.tokens == expected
        assert len(found.stats.drafted_by_rank) <= 1
        drafted += found.stats.drafted
    assert drafted > 0
