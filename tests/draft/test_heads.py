"""Drafts from heads, which read the target's hidden states: EAGLE-3 files, and MTP layers
(multi-token prediction) in the target's own file."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from heads import (
    depend_on_last_token,
    eagle3_model,
    few_tokens,
    glm_model,
    write_eagle3,
    write_glm,
    write_perfect_pair,
    write_qwen,
)
from random_model import (
    WRITERS,
    delta_net_model,
    write_dense,
)
from session_options import EXACT_HERE, Open
from specllama import ArgumentError, _core

NO_END: dict[str, Any] = {"logit_bias": {2: -100.0}}
PROMPT = [1, *range(5, 40)] * 3


def eagle3_pair(folder: Path, kind: str) -> dict[str, Any]:
    """Return the arguments of a session."""
    return {
        "model": WRITERS[kind](folder / "target.gguf"),
        "draft": write_eagle3(folder / "head.gguf"),
    }


PAIRS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "eagle3, dense": lambda folder: eagle3_pair(folder, "dense"),
    "eagle3, states with snapshots": lambda folder: eagle3_pair(folder, "hybrid with snapshots"),
    "eagle3, delta net": lambda folder: eagle3_pair(folder, "delta net"),
    "mtp, delta net": lambda folder: {"model": write_qwen(folder / "target.gguf"), "draft": "mtp"},
    "mtp, experts": lambda folder: {"model": write_glm(folder / "target.gguf"), "draft": "mtp"},
}


@pytest.fixture(params=sorted(PAIRS))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return PAIRS[request.param](tmp_path) | {"exact": EXACT_HERE}


def plain(pair: dict[str, Any]) -> dict[str, Any]:
    return pair | {"draft": None}


SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7, "top_k": 20},
    {"temperature": 1.0, "repeat_penalty": 1.2},
    {"temperature": 1.3, "min_p": 0.02},
]


@pytest.mark.parametrize("spec_length", [1, 5])
def test_drafts_of_a_random_head_change_no_token(
    pair: dict[str, Any], open_session: Open, spec_length: int
) -> None:
    session = open_session(**pair, spec_length=spec_length)
    without = open_session(**plain(pair))
    for seed, setting in enumerate(SETTINGS):
        how = setting | NO_END | {"seed": seed, "max_tokens": 60}
        generation = session.generate(PROMPT, **how)
        assert generation.tokens == without.generate(PROMPT, **how).tokens
        stats = generation.stats
        assert stats.exact is (EXACT_HERE is True)
        assert stats.drafter_errors == 0, stats.last_drafter_error
        assert stats.drafted >= (stats.rounds - 1 - spec_length) * spec_length
        assert stats.by_drafter["model"] == (stats.drafted, stats.accepted)


def test_planned_lengths_of_head_drafts_change_no_token(
    pair: dict[str, Any], open_session: Open
) -> None:
    session = open_session(**pair, spec_length="auto")
    without = open_session(**plain(pair))
    for seed in range(3):
        how = NO_END | {"seed": seed, "temperature": 0.5 * seed, "max_tokens": 60}
        generation = session.generate(PROMPT, **how)
        assert generation.tokens == without.generate(PROMPT, **how).tokens
        assert generation.stats.drafter_errors == 0, generation.stats.last_drafter_error


WITH_BRANCHES = ("eagle3, dense", "mtp, experts")
"""Pairs whose target's memory holds branches; the others verify chains."""


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_trees_of_head_drafts_change_no_token(
    tmp_path: Path, open_session: Open, name: str
) -> None:
    pair = PAIRS[name](tmp_path) | {"exact": EXACT_HERE}
    session = open_session(**pair, spec_length=4, spec_tree=3)
    planned = open_session(**pair, spec_length="auto", spec_tree=3)
    without = open_session(**plain(pair))
    n_aside = [0, 0, 0]
    for seed, setting in enumerate(SETTINGS):
        how = setting | NO_END | {"seed": seed, "max_tokens": 60}
        expected = without.generate(PROMPT, **how).tokens
        assert planned.generate(PROMPT, **how).tokens == expected
        generation = session.generate(PROMPT, **how)
        assert generation.tokens == expected
        stats = generation.stats
        assert stats.exact is (EXACT_HERE is True)
        assert stats.drafter_errors == 0, stats.last_drafter_error
        assert sum(stats.drafted_by_rank) == stats.drafted
        for rank, n in enumerate(stats.drafted_by_rank):
            n_aside[rank] += n
    assert all((n > 100) == (name in WITH_BRANCHES) for n in n_aside[1:])


def test_a_head_drafts_in_the_round_after_an_accepted_branch(
    tmp_path: Path, open_session: Open
) -> None:
    """The target's decode of the branch gave the state of its accepted token."""
    session = open_session(**eagle3_pair(tmp_path, "dense"), spec_length=2, spec_tree=4)
    n_aside = 0
    for seed in range(6):
        how = NO_END | {"max_tokens": 100, "temperature": 1.5, "seed": seed}
        stats = session.generate(PROMPT, **how).stats
        assert stats.drafter_errors == 0, stats.last_drafter_error
        # Except for the first round, which ends the prompt, and the last, which has no space left.
        assert all(drafted > 0 for drafted, _ in stats.by_round[1:-1])
        n_aside += sum(stats.accepted_by_rank[1:])
    assert n_aside > 5


def test_several_requests_with_a_head_get_the_tokens_of_each_alone(
    pair: dict[str, Any], open_session: Open
) -> None:
    session = open_session(**pair, n_seq=3)
    without = open_session(**plain(pair))
    prompts = [PROMPT[:n] for n in (5, 40, 90, 7)]
    found = session.generate(prompts, max_tokens=50, **NO_END)
    for prompt, generation in zip(prompts, found, strict=True):
        assert generation.tokens == without.generate(prompt, max_tokens=50, **NO_END).tokens
        assert generation.stats.drafted > 0 == generation.stats.drafter_errors


def test_a_head_with_a_reduced_vocabulary_drafts_only_its_tokens(
    tmp_path: Path, open_session: Open
) -> None:
    few_tokens(model := eagle3_model())
    head = write_eagle3(tmp_path / "head.gguf", model)
    target = write_dense(tmp_path / "target.gguf")
    session, without = open_session(target, head), open_session(target, None)
    for how in ({}, {"temperature": 0.8}, {"temperature": 1.0, "acceptance": "rejection"}):
        options = how | NO_END | {"seed": 1, "max_tokens": 60}
        generation = session.generate(PROMPT, **options, trace=True)
        assert generation.stats.drafter_errors == 0
        assert generation.trace is not None
        drafted = [one.token for each in generation.trace.rounds for one in each.draft]
        assert len(drafted) > 100
        assert all(token % 3 == 0 for token in drafted)
        if "acceptance" not in how:
            assert generation.tokens == without.generate(PROMPT, **options).tokens


@pytest.fixture(params=["eagle3", "eagle3 that shares", "mtp, delta net", "mtp, experts"])
def perfect_pair(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A target whose tokens the head always predicts."""
    if "eagle3" in request.param:
        target, head = write_perfect_pair(tmp_path, shares="shares" in request.param)
        return {"model": target, "draft": head}
    if "experts" in request.param:
        depend_on_last_token(model := glm_model())
        return {"model": write_glm(tmp_path / "target.gguf", model), "draft": "mtp"}
    depend_on_last_token(model := delta_net_model(n_predicting=1))
    return {"model": write_qwen(tmp_path / "target.gguf", model), "draft": "mtp"}


def all_right(stats: _core.Stats) -> bool:
    return stats.drafter_errors == 0 and stats.drafted == stats.accepted > 0


def test_a_perfect_head_is_always_accepted(
    perfect_pair: dict[str, Any], open_session: Open
) -> None:
    """States and tokens stay in step: from prompts, after drafts, and after plain rounds."""
    session = open_session(**perfect_pair, spec_length=5)
    without = open_session(perfect_pair["model"], None)
    for n in (1, 2, 70, 140):  # some exceed what the head processes at once
        prompt = [1, *itertools.islice(itertools.cycle(range(3, 33)), n)]
        generation = session.generate(prompt, max_tokens=100, **NO_END)
        assert generation.tokens == without.generate(prompt, max_tokens=100, **NO_END).tokens
        assert all_right(generation.stats)
        assert generation.stats.rounds <= 19


def test_head_states_are_reused_for_the_next_request(
    perfect_pair: dict[str, Any], open_session: Open, tmp_path: Path
) -> None:
    session = open_session(**perfect_pair, n_seq=3)
    prompt = [1, *range(3, 33), *range(3, 33)]
    first = session.generate(prompt, max_tokens=30, **NO_END)
    session.save_state(tmp_path / "state")
    longer = [*prompt, *first.tokens, 7, 8]
    again = session.generate(longer, max_tokens=30, **NO_END)
    half = session.generate([*prompt[:40], 9, 10, 11], max_tokens=30, **NO_END)
    several = session.generate([longer, prompt, prompt[:50]], max_tokens=30, **NO_END)
    later = open_session(**perfect_pair, n_seq=3)
    later.load_state(tmp_path / "state")
    loaded = later.generate(longer, max_tokens=30, **NO_END)
    assert again.tokens == loaded.tokens == several[0].tokens
    assert again.stats.reused_tokens > 60
    assert loaded.stats.reused_tokens > 60
    for generation in (first, again, half, *several, loaded):
        assert all_right(generation.stats)


def test_planned_drafts_of_a_perfect_head_are_all_accepted(
    perfect_pair: dict[str, Any], open_session: Open, open_planned: Open
) -> None:
    """Next to n-grams, at any draft length: its drafts change no token and are counted as its
    own."""
    session = open_planned(**perfect_pair)
    without = open_session(perfect_pair["model"], None)
    generation = session.generate([1, 5, 6], max_tokens=150, **NO_END)
    assert generation.tokens == without.generate([1, 5, 6], max_tokens=150, **NO_END).tokens
    drafted, accepted = generation.stats.by_drafter["model"]
    assert drafted == accepted > 0
    assert generation.stats.drafter_errors == 0


def test_draft_auto_uses_the_mtp_layers_of_the_file(tmp_path: Path, open_session: Open) -> None:
    for model, brings in (
        (write_qwen(tmp_path / "with.gguf"), True),
        (WRITERS["delta net"](tmp_path / "without.gguf"), False),
    ):
        assert _core.brings_head(str(model)) == brings
        assert _core.read_model_file(str(model)).brings_head == brings
        stats = open_session(model, "auto").generate(PROMPT, max_tokens=30, **NO_END).stats
        assert (stats.by_drafter["model"][0] > 0) == brings
        assert stats.drafter_errors == 0


def test_unused_mtp_layers_print_no_warning(
    tmp_path: Path, open_session: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    open_session(write_qwen(tmp_path / "with.gguf"), None)
    assert capfd.readouterr().err == ""


def test_draft_options_apply_to_heads(tmp_path: Path, open_session: Open) -> None:
    target, head = write_perfect_pair(tmp_path, shares=True)
    session = open_session(target, head, draft_p_min=1.0)
    assert session.generate([1, 5, 6], max_tokens=20, **NO_END).stats.drafted == 0
    with pytest.raises(ArgumentError, match="draft_p_min"):
        open_session(target, head, draft_p_min=2.0)
    with pytest.raises(ArgumentError, match="draft_top_k"):
        open_session(target, head, draft_top_k=-2)
