"""Simulated rounds, compared with sums by hand, a session's drafts, and other drafters."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from folders import DATA
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from prompts import PROMPTS
from specllama import ArgumentError, SpecSession
from specllama.bench.simulating import Simulation, geometric_mean, simulate
from specllama.bench.workload import choose
from specllama.simulate import (
    MAX_DRAFT,
    Drafts,
    calibrated_planner,
    curve_of,
    fixed_time,
    lookup_drafts,
    ngram_drafts,
    ngram_map_drafts,
    ngram_simple_drafts,
    planned_time,
    read_curves,
)

FLAT = curve_of({1: 1.0})


def drafts_of(length: list[int], right: list[int]) -> Drafts:
    return Drafts(0, np.array(length), np.array(right), [])


def test_simulated_times_equal_sums_by_hand() -> None:
    drafts = drafts_of([9, 9, 9, 9, 9, 0, 9, 9], [3, 2, 1, 0, 2, 0, 0, 9])
    # Plain rounds; then the first token alone, 2 right, 2 right and the last token.
    assert fixed_time(drafts, FLAT, 0) == 8
    assert fixed_time(drafts, FLAT, 2) == 4
    linear = curve_of({1: 1.0, 2: 1.5})
    # From 0 (nothing drafted), 1 (2 drafted), 4 (2), 7 (no room).
    assert fixed_time(drafts, linear, 2) == pytest.approx(1 + 2 + 2 + 1)
    # From 0 (nothing drafted), 1 (1), 3 (1), 4 (1), 6 (1), 7 (no room).
    assert fixed_time(drafts, linear, 1) == pytest.approx(1 + 4 * 1.5 + 1)


def test_copies_are_drafted_whole_if_width_is_free() -> None:
    text = list(range(100, 300))
    drafts = ngram_drafts(text * 2, text)
    # A copy of everything: the first token; 64 tokens and the target's own in each of three rounds;
    # then four.
    assert drafts.right[0] == MAX_DRAFT
    assert fixed_time(drafts, FLAT, MAX_DRAFT) == 5
    assert planned_time(drafts, FLAT, calibrated_planner(FLAT)) <= 7
    nothing = ngram_drafts([1, 2, 3], text)
    assert planned_time(nothing, FLAT, calibrated_planner(FLAT)) == 200


def test_copies_do_not_slow_down_later_free_text(
    open_session: Callable[..., SpecSession],
) -> None:
    session = open_session(None)

    def drafts(name: str) -> list[Drafts]:
        (workload,) = choose(name, None, 2)
        return [
            ngram_drafts(
                session.tokenize(task.prompt),
                session.tokenize(task.reference, add_special=False)[:150],
            )
            for task in workload.tasks
        ]

    copied, free = drafts("edit") + drafts("quote"), drafts("replayed-code") + drafts("prose")
    curves = read_curves(DATA / "curves.json")
    for name, curve in curves.items():
        planner = calibrated_planner(curve)
        for _ in range(3):
            for one in copied:
                planned_time(one, curve, planner)
        for _ in range(2):
            time = sum(planned_time(one, curve, planner) for one in free)
        assert sum(map(len, free)) / time >= 0.98, name


def test_simulated_speed_is_near_the_bound_and_above_the_peers(
    open_session: Callable[..., SpecSession],
) -> None:
    curves = read_curves(DATA / "curves.json")
    machines: dict[str, list[Simulation]] = {name: [] for name in curves}
    for one in simulate(choose("all", None, 4), curves, open_session(None), 192):
        machines[one.curve].append(one)
    for simulations in machines.values():
        assert len(simulations) == 5
        mean = geometric_mean(simulations)
        assert mean.bound_share >= {"q4_k_m": 0.78, "q4_k_m_amx": 0.79}.get(mean.curve, 0.8)
        for others in (mean.fixed, mean.peers):
            assert mean.ngram > max(others.values())
        for one in simulations:
            if one.workload == "edit":
                assert one.ngram > max(*one.fixed.values(), *one.peers.values())


def test_simulated_drafts_equal_those_of_a_session(
    open_session: Callable[..., SpecSession],
) -> None:
    """With drafts of a fixed length, all rounds can be computed."""
    session = open_session(spec_length=4)
    generation = session.generate(PROMPTS["module"], max_tokens=100)
    drafts = ngram_drafts(session.tokenize(PROMPTS["module"]), generation.tokens)
    rounds, i = [], 0
    while i < len(drafts):
        g = min(4, int(drafts.length[i]), len(drafts) - 1 - i) if i > 0 else 0
        accepted = min(g, int(drafts.right[i]))
        rounds.append((g, accepted))
        i += accepted + 1
    assert rounds == generation.stats.by_round
    assert sum(accepted for _, accepted in rounds) > 10


@pytest.mark.parametrize("ngram_size", [1, 2, 3])
@pytest.mark.parametrize("n_draft", [2, 10])
def test_simulated_prompt_lookup_equals_that_of_llama_cpp_python(
    ngram_size: int, n_draft: int
) -> None:
    rng = random.Random(1)
    find = LlamaPromptLookupDecoding.find_candidate_pred_tokens
    for n_prompt in (1, 2, 7, 30):
        prompt, text = ([rng.randrange(4) for _ in range(n)] for n in (n_prompt, 50))
        drafts = lookup_drafts(prompt, text, ngram_size=ngram_size, n_draft=n_draft)
        for i in range(len(text)):
            expected = find(np.array(prompt + text[:i]), ngram_size, n_draft).tolist()
            assert drafts.length[i] == len(expected)
            right = 0
            while expected[right : right + 1] == text[i + right : i + right + 1] != []:
                right += 1
            assert drafts.right[i] == right


def ngram_simple(known: list[int], last: int, size: int, n_draft: int, _: int) -> list[int]:
    """As llama.cpp's common_ngram_simple_draft: it searches all tokens each time."""
    if len(known) <= size + n_draft + 1:
        return []
    pattern = [*known[len(known) - size + 1 :], last]
    for place in range(len(known) - size - 1, 0, -1):
        if known[place : place + size] == pattern:
            n = min(n_draft, len(known) - (place + size))
            return known[place + size : place + size + n] if n >= size else []
    return []


def ngram_map(known: list[int], last: int, size: int, n_draft: int, n_prompt: int) -> list[int]:
    """As llama.cpp's common_ngram_map_draft, without its learning."""
    if len(known) < 2 * size + n_draft:
        return []
    pattern = [*known[len(known) - size + 1 :], last]
    border = max(n_prompt - size - n_draft - 1, 0)
    for place in (*range(border, 0, -1), *range(border + 1, len(known) - size - n_draft)):
        if known[place : place + size] == pattern:
            return known[place + size : place + size + n_draft]
    return []


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("n_draft", [2, 3, 6])
@pytest.mark.parametrize(
    ("make", "expect"), [(ngram_simple_drafts, ngram_simple), (ngram_map_drafts, ngram_map)]
)
def test_simulated_ngrams_equal_those_of_llama_cpp(
    make: Callable[..., Drafts],
    expect: Callable[[list[int], int, int, int, int], list[int]],
    size: int,
    n_draft: int,
) -> None:
    rng = random.Random(2)
    n_drafts = n_right = 0
    for n_prompt in (1, 2, 7, 30, 60):
        prompt, text = ([rng.randrange(3) for _ in range(n)] for n in (n_prompt, 80))
        drafts = make(prompt, text, ngram_size=size, n_draft=n_draft)
        # llama.cpp drafts from the second token on.
        for i in range(1, len(text)):
            expected = expect(prompt + text[: i - 1], text[i - 1], size, n_draft, n_prompt)
            assert drafts.length[i] == len(expected)
            right = 0
            while expected[right : right + 1] == text[i + right : i + right + 1] != []:
                right += 1
            assert drafts.right[i] == right
            n_drafts += len(expected) > 0
            n_right += right
    assert (n_drafts > 0) == (make is ngram_map_drafts or n_draft >= size)
    assert n_right > 0 or n_drafts == 0


def test_simulated_curves_are_interpolated_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    path.write_text(json.dumps({"about": "x", "a": {"1": 2, "3": 4, "5": 10}, "b": {"1": 7}}))
    curves = read_curves(path)
    assert [*curves] == ["a", "b"]
    assert curves["a"][:7] == pytest.approx([1, 1.5, 2, 3.5, 5, 6.5, 8])
    assert curves["b"] == pytest.approx(np.ones(MAX_DRAFT + 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "is not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"about": "none"}', "has no curve"),
        ('{"a": {"2": 1}}', 'must have the time of "1" token'),
        ('{"a": {"1": 0}}', "must be positive"),
        ('{"a": {"1": "x"}}', "must be a number"),
        ('{"a": {"1": 1, "-1": 1}}', "is not a number of tokens"),
        ('{"a": {"1": 1, "2": NaN}}', "must be positive"),
    ],
)
def test_bad_curve_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "curves.json"
    path.write_text(content)
    with pytest.raises(ArgumentError, match=message):
        read_curves(path)
