"""Drafts of block drafters: DFlash, DFlash2 and DSpark. For their arithmetic, see
test_block_reference.py."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import BLOCK, KINDS, TARGETS, block_model, write_block, write_target
from random_model import N_VOCAB, WIDTH, WRITERS, RandomModel, dense_model, words
from session_options import EXACT_HERE, Open
from specllama import ArgumentError

NO_END: dict[str, Any] = {"logit_bias": {2: -100.0}}
PROMPT = [1, *range(5, 40)] * 3


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=TARGETS)
def pair(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> dict[str, Any]:
    target = write_target(tmp_path / "target.gguf", request.param)
    return {"model": target, "draft": write_block(tmp_path / "draft.gguf", kind)}


def compare_with_plain(
    open_session: Open, pair: dict[str, Any], n_tokens: int, **options: Any
) -> None:
    """Compare so many tokens at each of three temperatures with plain decoding."""
    session = open_session(**pair, exact=EXACT_HERE, **options)
    without = open_session(pair["model"], None, exact=EXACT_HERE)
    n_seq = options.get("n_seq", 1)
    for temperature in (0.0, 0.7, 1.0):
        for i in itertools.count():
            if i * n_seq * 100 >= n_tokens:
                break
            how = NO_END | {"temperature": temperature, "seed": i, "max_tokens": 100}
            prompts = [[1, *words(20 + 9 * k, seed=10 * i + k)] for k in range(n_seq)]
            for prompt, found in zip(prompts, session.generate(prompts, **how), strict=True):
                assert found.stats.drafter_errors == 0, found.stats.last_drafter_error
                assert found.tokens == without.generate(prompt, **how).tokens
                # A plan drafts hardly any of their tokens, which are nearly always wrong.
                if options["spec_length"] != "auto":
                    assert found.stats.by_drafter["model"][0] > 90


@pytest.mark.parametrize("n_seq", [1, 4])
@pytest.mark.parametrize("spec_length", [64, "auto"])
def test_random_block_drafters_change_no_token(
    pair: dict[str, Any], open_session: Open, n_seq: int, spec_length: Any
) -> None:
    compare_with_plain(open_session, pair, 100 * n_seq, n_seq=n_seq, spec_length=spec_length)


@pytest.mark.slow
@pytest.mark.parametrize("n_seq", [1, 4])
def test_random_block_drafters_change_no_token_of_long_texts(
    pair: dict[str, Any], open_session: Open, n_seq: int
) -> None:
    compare_with_plain(open_session, pair, 20_000, n_seq=n_seq, spec_length=64)


@pytest.mark.parametrize("target", ["experts", "hybrid with snapshots", "delta net"])
def test_block_drafts_change_no_token_of_other_architectures(
    tmp_path: Path, open_session: Open, kind: str, target: str
) -> None:
    model = WRITERS[target](tmp_path / "target.gguf")
    sections = {"rope.dimension_sections": [32, 0, 0, 0]} if target == "delta net" else {}
    drafter = write_block(tmp_path / "draft.gguf", kind, **sections)
    pair = {"model": model, "draft": drafter}
    compare_with_plain(open_session, pair, 100, spec_length=4)


def test_trees_of_block_drafts_change_no_token(pair: dict[str, Any], open_session: Open) -> None:
    session = open_session(**pair, spec_length=4, spec_tree=3, exact=EXACT_HERE)
    without = open_session(pair["model"], None, exact=EXACT_HERE)
    for temperature in (0.0, 1.0):
        how = NO_END | {"temperature": temperature, "seed": 3, "max_tokens": 60}
        generation = session.generate(PROMPT, **how)
        assert generation.tokens == without.generate(PROMPT, **how).tokens
        assert generation.stats.drafter_errors == 0, generation.stats.last_drafter_error
        assert sum(generation.stats.drafted_by_rank[1:]) > 50


def test_block_drafts_drawn_from_distributions_are_verified_by_rejection(
    pair: dict[str, Any], open_session: Open, open_planned: Open
) -> None:
    how = NO_END | {"temperature": 1.0, "acceptance": "rejection", "seed": 2}
    for session, n_drafted in (
        (open_session(**pair, spec_length=3), 100),
        (open_planned(**pair), 0),
    ):
        stats = session.generate(PROMPT, max_tokens=80, **how).stats
        assert stats.drafter_errors == 0, stats.last_drafter_error
        assert stats.by_drafter["model"][0] > n_drafted


def test_block_drafts_change_no_token_under_a_grammar(
    pair: dict[str, Any], open_session: Open, open_planned: Open
) -> None:
    how: dict[str, Any] = {"grammar": 'root ::= (" w" [0-5] [0-9]?)+', "max_tokens": 40}
    without = open_session(pair["model"], None, exact=EXACT_HERE).generate(PROMPT, **how)
    for open_one in (open_session, open_planned):
        found = open_one(**pair, exact=EXACT_HERE).generate(PROMPT, **how)
        assert found.tokens == without.tokens
        assert found.stats.by_drafter["model"][0] > 0
        assert found.stats.drafter_errors == 0, found.stats.last_drafter_error


def test_block_drafts_are_at_most_as_long_as_a_block(tmp_path: Path, open_session: Open) -> None:
    target = write_target(tmp_path / "target.gguf", "llama")
    for kind in KINDS:
        drafter = write_block(tmp_path / f"{kind}.gguf", kind)
        session = open_session(target, drafter, spec_length=64)
        generation = session.generate(PROMPT, max_tokens=30, trace=True, **NO_END)
        assert generation.trace is not None
        lengths = {len(one.draft) for one in generation.trace.rounds}
        assert max(lengths) == BLOCK - (kind != "dspark")


def counting_pair(folder: Path) -> tuple[Path, Path]:
    """A target whose next token depends only on the last one, and a DSpark that knows it: its bias
    names that token, and its confidence head is certain."""
    target = dense_model(seed=1)
    for name, tensor in target.tensors.items():
        if name.endswith("attn_output.weight") or ".ffn_down" in name:
            tensor[...] = 0
    embeddings = target.tensors["token_embd.weight"]
    normed = embeddings / np.sqrt((embeddings**2).mean(-1, keepdims=True))
    after = (normed @ target.tensors["output.weight"].T).argmax(-1)
    model: RandomModel = block_model("dspark")
    model.tensors["output_norm.weight"] = np.zeros(WIDTH)
    model.tensors["markov_w1.weight"] = 20 * np.eye(N_VOCAB)
    model.tensors["markov_w2.weight"] = np.eye(N_VOCAB)[after].T
    model.tensors["conf_proj.weight"] = np.zeros((1, WIDTH + N_VOCAB))
    model.tensors["conf_proj.bias"] = np.array([4.0])
    paths = folder / "target.gguf", folder / "draft.gguf"
    target.write(paths[0], "llama", 2, {"rope.dimension_count": 64})
    write_block(paths[1], "dspark", model)
    return paths


def test_a_perfect_block_drafter_is_always_accepted(tmp_path: Path, open_session: Open) -> None:
    target, drafter = counting_pair(tmp_path)
    session = open_session(target, drafter, spec_length=64, n_seq=2)
    without = open_session(target, None)
    prompts = [PROMPT, PROMPT[:7], PROMPT[3:90]]
    session_found = session.generate(prompts, max_tokens=70, **NO_END)
    for prompt, found in zip(prompts, session_found, strict=True):
        assert found.tokens == without.generate(prompt, max_tokens=70, **NO_END).tokens
        assert found.stats.drafted == found.stats.accepted > 50
        assert found.stats.rounds <= 12


def test_the_confidence_head_is_the_evidence_of_a_draft(tmp_path: Path, open_session: Open) -> None:
    target, drafter = counting_pair(tmp_path)
    sure = 1 / (1 + np.exp(-4.0))
    generation = open_session(target, drafter, spec_length=5).generate(
        PROMPT, max_tokens=20, trace=True, **NO_END
    )
    assert generation.trace is not None
    drafted = [one for each in generation.trace.rounds for one in each.draft]
    assert len(drafted) > 10
    assert [one.confidence for one in drafted] == pytest.approx([sure] * len(drafted), abs=1e-3)
    none = open_session(target, drafter, spec_length=5, draft_p_min=0.99)
    assert none.generate(PROMPT, max_tokens=20, **NO_END).stats.drafted == 0
    with pytest.raises(ArgumentError, match="draft_p_min"):
        open_session(target, drafter, draft_p_min=2.0)


def test_a_loaded_state_continues_with_block_drafts(tmp_path: Path, open_session: Open) -> None:
    target, drafter = counting_pair(tmp_path)
    session = open_session(target, drafter, spec_length=5)
    first = session.generate(PROMPT, max_tokens=20, **NO_END)
    session.save_state(tmp_path / "state")
    longer = [*PROMPT, *first.tokens, 7]
    again = session.generate(longer, max_tokens=30, **NO_END)
    later = open_session(target, drafter, spec_length=5)
    later.load_state(tmp_path / "state")
    loaded = later.generate(longer, max_tokens=30, **NO_END)
    assert loaded.tokens == again.tokens
    for stats in (again.stats, loaded.stats):
        assert stats.reused_tokens > 100
        assert stats.drafted == stats.accepted > 20
        assert stats.drafter_errors == 0


def test_planned_drafts_of_a_perfect_block_drafter_are_all_accepted(
    tmp_path: Path, open_session: Open, open_planned: Open
) -> None:
    target, drafter = counting_pair(tmp_path)
    session = open_planned(target, drafter)
    without = open_session(target, None)
    n_drafted = 0
    for prompt in ([1, 5, 6], PROMPT):
        generation = session.generate(prompt, max_tokens=150, **NO_END)
        assert generation.tokens == without.generate(prompt, max_tokens=150, **NO_END).tokens
        assert generation.stats.drafter_errors == 0
        drafted, accepted = generation.stats.by_drafter["model"]
        assert drafted == accepted
        n_drafted += drafted
    assert n_drafted > 0
