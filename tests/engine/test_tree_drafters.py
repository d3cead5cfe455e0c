"""Trees that drafters propose: their outcome, their errors and their trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drafters import Branching, FixedDraft
from random_model import N_VOCAB, write_dense
from session_options import open_exact
from specllama import ArgumentError, SpecSession
from specllama.session import BUNDLED_MODEL

RANDOM_PROMPT = [1, *range(3, 60)]


def test_a_drafter_observes_the_outcome_of_its_main_path(tmp_path: Path) -> None:
    model = write_dense(tmp_path / "model.gguf")
    drafter = Branching(N_VOCAB, "branch")
    options: Any = {"max_tokens": 40, "logit_bias": {2: -100.0}}
    with open_exact(model, drafter, spec_length=4, spec_tree=3) as session:
        drafter.coming = session.generate(RANDOM_PROMPT, **options).tokens
        drafter.observed.clear()
        stats = session.generate(RANDOM_PROMPT, **options).stats
    assert stats.rounds < 12
    assert len(drafter.observed) > 5
    for n_accepted, token in drafter.observed:
        assert n_accepted == 0
        assert token in drafter.coming


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ([[3], [4, 5, 6]], "tokens; at most"),
        ([[3], [N_VOCAB]], f"proposed token {N_VOCAB}"),
        ([[3], [-1]], "not a token id"),
        ([[3], ["a"]], "TypeError"),
        ([[], [3], [4, 4]], None),
        ([(3, 4), np.array([3, 5]), [3, 4]], None),
        ([[token] for token in range(3, 90)], None),
        ([3, [4]], None),
    ],
)
def test_malformed_trees_of_drafters_are_recorded_as_errors(
    tmp_path: Path, said: list[Any], error: str | None
) -> None:
    model = write_dense(tmp_path / "model.gguf")
    with (
        open_exact(model, None) as plain,
        open_exact(model, FixedDraft(said, error is None), spec_length=2, spec_tree=8) as session,
    ):
        options: Any = {"max_tokens": 12, "logit_bias": {2: -100.0}}
        generation = session.generate(RANDOM_PROMPT, **options)
        assert generation.tokens == plain.generate(RANDOM_PROMPT, **options).tokens
        stats = generation.stats
        assert (stats.drafter_errors > 0) == (error is not None)
        assert (error or "") in stats.last_drafter_error
        assert (stats.drafted > 0) == (error is None)
        assert max(stats.by_round)[0] <= 16


def test_the_trace_has_the_parents_of_a_tree(tmp_path: Path) -> None:
    model = write_dense(tmp_path / "model.gguf")
    drafter = Branching(N_VOCAB, "random")
    options: Any = {"max_tokens": 60, "logit_bias": {2: -100.0}}
    with open_exact(model, drafter, spec_length=4, spec_tree=3) as session:
        drafter.coming = session.generate(RANDOM_PROMPT, **options).tokens
        generation = session.generate(RANDOM_PROMPT, trace=True, **options)
    assert generation.trace is not None
    tokens: list[int] = []
    n_branches = 0
    for index, one in enumerate(generation.trace.rounds):
        last = None
        for i, drafted in enumerate(one.draft):
            n_branches += i > 0 and drafted.parent != i - 1
            if drafted.accepted:
                assert drafted.parent == last
                last = i
                tokens.append(drafted.token)
        assert one.next is not None
        tokens.append(one.next)
        kinds = [token.kind for token in generation.trace.tokens(index)]
        assert kinds.count("accepted") + kinds.count("cut") >= one.accepted
        has_more = any(drafted.parent == last for drafted in one.draft)
        if one.draft and "cut" not in kinds:
            assert kinds[-1] == ("replacement" if has_more else "bonus")
    assert tokens[:60] == generation.tokens
    assert n_branches > 10
    assert "<html" in generation.trace.to_html()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spec_tree": 0}, "spec_tree must be from 1"),
        ({"spec_tree": 9}, "spec_tree must be from 1 to 8 .1: off., not 9"),
        ({"spec_tree": "on"}, "spec_tree must be"),
        ({"spec_tree": 2.5}, "spec_tree must be"),
        ({"spec_tree": 4, "spec_length": 17}, "spec_length times spec_tree must be 64 at most"),
    ],
)
def test_bad_tree_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(BUNDLED_MODEL, **options)
