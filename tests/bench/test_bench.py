"""`specllama bench`: its output, and the arithmetic of its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import DATA
from session_options import Open
from specllama import SpecSession
from specllama.__main__ import main
from specllama.bench.arithmetic import (
    decode_curve,
    median_interval,
    oracle_speed,
    promised_speed,
)
from specllama.bench.contestants import Matches
from specllama.bench.contestants import choose as choose_contestants
from specllama.bench.measuring import measure
from specllama.bench.workload import Task, Workload, choose, for_model
from specllama.measure.sequences import first_difference, repeated_share
from specllama.session import BUNDLED_DRAFT
from specllama.theory import DecodeTimes, measured_improvement_factor
from specllama.workloads import ANSWERED, load_answered

SMALL = ["bench", "-n", "16", "--texts", "1", "--repeat", "1", "-t", "1", "-ngl", "0"]

CURVES = str(DATA / "curves.json")

Captured = pytest.CaptureFixture[str]


def results_of(arguments: list[str], capsys: Captured) -> list[dict[str, Any]]:
    """Return the result of each workload, without the mean that follows several."""
    assert main([*SMALL, *arguments, "--json"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [result for result in results if result["workload"] != "mean"]


@pytest.fixture
def replay_file(tmp_path: Path) -> Path:
    """Two texts; the first repeats its prompt."""
    prompt = "def first(values):\n    return values[0]\n\n\n"
    path = tmp_path / "mine.jsonl"
    path.write_text(
        json.dumps({"prompt": prompt, "reference": prompt})
        + "\n"
        + json.dumps({"prompt": prompt, "reference": "x" * 40, "workload": "other"})
    )
    return path


def test_bench_table_has_a_section_for_each_workload_and_a_mean(capsys: Captured) -> None:
    assert main([*SMALL, "--workload", "edit,copy", "--contestants", "ngram,ngram-2,ngram-8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "up to 16 tokens a text" in lines[0]
    assert any(line.startswith("edit (replayed): 1 text, 16 tokens, ") for line in lines)
    assert any(line.startswith("copy (generated): 1 text, 16 tokens, ") for line in lines)
    mean = lines.index("geometric mean of 2 workloads")
    for contestant in ("plain", "ngram", "ngram-2", "ngram-8"):
        assert sum(line.split()[:1] == [contestant] for line in lines[:mean]) == 2
    assert [line.split()[0] for line in lines[mean + 1 :]] == [
        "plain",
        "ngram",
        "ngram-2",
        "ngram-8",
    ]
    assert lines[mean + 1].split() == ["plain", "1.00x", "1.00x"]
    assert sum("best fixed: ngram-" in line and "; ngram is " in line for line in lines) == 2


def test_bench_json_has_a_result_for_each_workload(capsys: Captured) -> None:
    options = ["--workload", "edit,free,adversarial", "-kv", "q8_0", "--texts", "2"]
    results = results_of(options, capsys)
    assert [result["workload"] for result in results] == ["edit", "free", "adversarial"]
    assert [result["kind"] for result in results] == ["replayed", "generated", "generated"]
    assert [result["n_texts"] for result in results] == [2, 1, 2]
    for result in results:
        assert result["best_fixed"] is None
        plain, ngram = result["scores"]
        assert (plain["contestant"], ngram["contestant"]) == ("plain", "ngram")
        assert plain["ratio"] == plain["low"] == plain["high"] == plain["tokens_per_round"] == 1
        assert plain["first_token_ratio"] == 1
        assert ngram["first_token_ratio"] > 0
        assert ngram["low"] <= ngram["ratio"] <= ngram["high"]
        assert plain["acceptance_rate"] == plain["drafted_per_round"] == 0
        assert ngram["first_difference"] is None
        assert ngram["bound_share"] / plain["bound_share"] == pytest.approx(ngram["ratio"])
        assert ngram["promised"] is None
        assert 0 <= result["repeated"] < 1
    edit, free, _ = results
    assert edit["n_tokens"] == 32
    n_texts, (plain, ngram) = free["n_texts"], free["scores"]
    assert n_texts == 1
    assert ngram["ratio"] == pytest.approx(ngram["tokens_per_second"] / plain["tokens_per_second"])


def test_bench_json_ends_with_the_mean_of_several_workloads(capsys: Captured) -> None:
    options = ["--contestants", "plain", "--json", "--workload"]
    assert main([*SMALL, *options, "edit,prose"]) == 0
    *results, mean = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["workload"] for result in results] == ["edit", "prose"]
    scores = [{"contestant": "plain", "ratio": 1.0, "first_token_ratio": 1.0}]
    assert mean == {"workload": "mean", "n_workloads": 2, "scores": scores}
    assert main([*SMALL, *options, "edit"]) == 0
    assert [json.loads(line)["workload"] for line in capsys.readouterr().out.splitlines()] == [
        "edit"
    ]


def test_answered_workloads_generate_from_rendered_conversations(
    smollm2: Path, capsys: Captured
) -> None:
    """Each text is the model's answer to a conversation rendered by its template."""
    options = ["-m", str(smollm2), "-n", "8", "--workload", "answered-questions,write", "--texts"]
    questions, write = results_of([*options, "1"], capsys)
    assert [one["workload"] for one in (questions, write)] == ["questions", "write"]
    for result in (questions, write):
        assert (result["kind"], result["n_texts"], result["n_tokens"]) == ("answered", 1, 8)
        plain, ngram = result["scores"]
        assert (plain["contestant"], ngram["contestant"]) == ("plain", "ngram")
        assert plain["bound_share"] is not None
        assert plain["first_token_ratio"] == 1


@pytest.mark.parametrize(("n_texts", "half"), [(3, None), (1, "held-out")])
def test_default_workloads_are_answered_if_the_model_has_a_template(
    n_texts: int, half: Any, smollm2: Path, open_session: Open
) -> None:
    """Conversations if the model has a template; requested workloads in every case."""
    chatty = open_session(smollm2, None, n_ctx=64, exact=False, kv_type="f16")
    answered = for_model([], chatty, n_texts, half)
    assert [(one.name, one.kind) for one in answered] == [(name, "answered") for name in ANSWERED]
    first = load_answered("fix", half)[:n_texts]
    assert [task.prompt for task in answered[0].tasks] == [one.messages for one in first]
    tokens = answered[0].tasks[0].prompt_tokens(chatty)
    assert tokens == chatty.render_chat(first[0].messages)
    edits = choose("edit", None, n_texts)
    bundled = open_session(None, None, n_ctx=64)
    assert for_model(edits, chatty, n_texts) == for_model(edits, bundled, n_texts) == edits
    assert {one.kind for one in for_model([], bundled, n_texts)} == {"replayed", "generated"}


def test_a_workload_kind_selects_all_its_workloads() -> None:
    for kind in ("replayed", "generated", "answered"):
        workloads = choose(kind, None, 1)
        assert {one.kind for one in workloads} == {kind}
        assert [*map(repr, workloads)] == [
            repr(one) for one in choose("all", None, 1) if one.kind == kind
        ]


def test_bench_contestants_process_every_prompt_without_reuse(open_session: Open) -> None:
    """The time to the first token is that of the whole prompt."""
    session = open_session()
    contestants = choose_contestants("ngram-4", with_model=False)
    sessions = [open_session(draft=None), session]
    prompt = "def first(values):\n    return values[0]\n\n\n"
    workload = Workload("mine", "generated", [Task(prompt), Task(prompt + prompt)])
    measure(workload, contestants, sessions, 8, 1)
    for one in sessions:
        assert one.last is not None
        assert one.last.stats.reused_tokens == 0
        assert one.last.stats.prompt_tokens > 20


def test_the_code_workload_is_both_replayed_and_generated(capsys: Captured) -> None:
    options = ["--contestants", "plain", "--texts", "2", "--workload"]
    replayed, generated = results_of([*options, "code"], capsys)
    assert [one["workload"] for one in (replayed, generated)] == ["code", "code"]
    assert [one["kind"] for one in (replayed, generated)] == ["replayed", "generated"]
    assert generated["n_texts"] == 2
    (result,) = results_of([*options, "generated-code"], capsys)
    assert (result["workload"], result["kind"]) == ("code", "generated")


def test_bench_contestants_all_measures_every_drafter_and_fixed_length(capsys: Captured) -> None:
    options = ["-md", str(BUNDLED_DRAFT), "--workload", "edit"]
    (result,) = results_of([*options, "--contestants", "all"], capsys)
    scores = {score["contestant"]: score for score in result["scores"]}
    assert [*scores] == [
        *("plain", "ngram", "match", "model", "cascade"),
        *("ngram-1", "ngram-2", "ngram-4", "ngram-8", "ngram-16"),
        *("model-1", "model-2", "model-4", "model-8", "model-16"),
    ]
    fixed = [name for name in scores if name[-1].isdigit()]
    assert result["best_fixed"] == max(fixed, key=lambda name: scores[name]["ratio"])
    assert scores["cascade"]["bound_share"] is scores["model-4"]["bound_share"] is None
    # An edited function begins as it was.
    assert scores["ngram-16"]["tokens_per_round"] > scores["ngram-1"]["tokens_per_round"] > 1.5
    promises = [scores[f"model-{n}"]["promised"] for n in (1, 2, 4, 8)]
    assert scores["model"]["promised"] == scores["cascade"]["promised"] == max(1, *promises)
    (result,) = results_of(options, capsys)
    assert [one["contestant"] for one in result["scores"]] == ["plain", "ngram", "cascade"]
    assert result["scores"][2]["promised"] is None


def test_match_contestant_drafts_only_matches_and_records_their_lengths(
    open_session: Callable[..., SpecSession],
) -> None:
    """The drafts are those of a match finder; the trace has the lengths of the matches."""
    session = open_session(draft=Matches())
    text = "def first(values):\n    return values[0]\n\n\n"
    generation = session.replay(text, text + text, trace=True)
    assert generation.trace is not None
    drafted = [one for each in generation.trace.rounds for one in each.draft]
    assert {one.drafter for one in drafted} == {"match"}
    assert max(one.length for one in drafted) > min(one.length for one in drafted) >= 4
    assert generation.stats.tokens_per_round > 2


def test_replay_files_define_workloads(replay_file: Path, capsys: Captured) -> None:
    mine, other = results_of(["--replay", str(replay_file)], capsys)
    assert (mine["workload"], mine["kind"], mine["n_texts"]) == ("mine", "replayed", 1)
    assert (other["workload"], other["kind"]) == ("other", "replayed")
    both = results_of(["--replay", str(replay_file), "--workload", "free"], capsys)
    assert [result["workload"] for result in both] == ["mine", "other", "free"]


def test_bench_simulation_prints_a_line_for_each_curve_and_workload(
    replay_file: Path, tmp_path: Path, capsys: Captured
) -> None:
    curves = tmp_path / "curves.json"
    curves.write_text(
        json.dumps({"about": "two machines", "even": {"1": 3}, "expensive": {"1": 1, "2": 9}})
    )
    options = ["bench", "--replay", str(replay_file), "--simulate", str(curves)]
    assert main(options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[3:]] == [
        [curve, workload]
        for curve in ("even", "expensive")
        for workload in ("mine", "other", "mean")
    ]
    assert main([*options, "--json"]) == 0
    even, _, expensive, _ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert even["ngram"] > 2
    assert even["bound_share"] == pytest.approx(even["ngram"] / even["oracle"])
    # If a second token costs eight times the first, drafting cannot gain.
    assert expensive["ngram"] > 0.95
    assert max(expensive["fixed"].values()) < 0.5
    assert main([*options, "--workload", "edit,prose", "--texts", "1"]) == 0


def test_median_interval_matches_the_normal_approximation() -> None:
    assert median_interval([1.5]) == (1.5, 1.5, 1.5)
    median, low, high = median_interval([1.0, 2.0, 3.0])
    assert (median, low, high) == (2.0, 1.0, 3.0)
    # The standard error of the median of n normal values is 1.2533 / sqrt(n).
    values = np.random.default_rng(1).normal(size=1000)
    median, low, high = median_interval(list(values))
    assert low < median < high
    assert high - low == pytest.approx(2 * 1.96 * 1.2533 / 1000**0.5, rel=0.25)
    assert median_interval(list(values)) == (median, low, high)


def test_repeated_share_and_first_difference_match_counts_by_hand() -> None:
    assert repeated_share([1, 2, 3]) == 0
    assert repeated_share([1, 2, 3, 4, 5, 6]) == 0
    assert repeated_share([1, 1, 1, 1, 1, 1]) == pytest.approx(2 / 3)
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 5, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2


def test_decode_curve_takes_medians_and_interpolates() -> None:
    decodes = [(1, 2.0), (1, 4.0), (1, 90.0), (2, 5.0), (4, 8.0), (4, 8.0)]
    assert decode_curve(decodes) == pytest.approx([4, 5, 6.5, 8])
    # Widths that were not decoded come from an earlier curve, here of a machine half as fast.
    before = [8.0, 9.0, 9.5, 0.0, 20.0]
    assert decode_curve([(1, 4.0), (3, 6.0)], before) == pytest.approx([4, 4.5, 6, 8, 10])
    assert decode_curve([(1, 4.0)], [0.0, 9.0]) == (4,)
    assert decode_curve([(2, 1.0)]) == ()
    assert decode_curve([]) == ()


def test_oracle_speed_matches_sums_by_hand() -> None:
    # 1 2 3 4 5 twice: after 1 comes a copy of the other four, and then 1 again.
    prompt = [1, 2, 3, 4, 5, 1, 2, 3]
    text = [4, 5, 1, 2, 3, 4, 5]
    # The prefill gives the 4; six tokens follow in rounds of three.
    assert oracle_speed([(prompt, text)], DecodeTimes([1.0, 1.0, 1.0])) == pytest.approx(3)
    assert oracle_speed([(prompt, text)], DecodeTimes([1.0])) == 1
    # Two tokens cost 1.5: three rounds.
    assert oracle_speed([(prompt, text)], DecodeTimes([1.0, 1.5])) == pytest.approx(6 / 4.5)
    assert oracle_speed([(prompt, text)], DecodeTimes([0.02, 0.03])) == pytest.approx(6 / 4.5)
    assert oracle_speed([([7, 8], [9, 10, 11])], DecodeTimes([1.0, 1.0])) == 1
    assert oracle_speed([(prompt, text)], DecodeTimes([])) is None
    assert oracle_speed([(prompt, [4])], DecodeTimes([1.0, 1.0])) is None


def test_promised_speed_matches_the_formula() -> None:
    # Five tokens are accepted and two rejected; later tokens of those drafts are not verified.
    rounds = [(3, 3), (3, 1), (0, 0), (3, 0), (1, 1)]
    curve = DecodeTimes([0.02, 0.03, 0.035, 0.04])
    promised = promised_speed(rounds, 3, curve, 0.004)
    assert promised == pytest.approx(measured_improvement_factor(5 / 7, 3, curve, 0.004))
    # By hand: 1 + a + a^2 + a^3 tokens in d + d + d + v(4), against one in v(1).
    tokens = 1 + 5 / 7 + (5 / 7) ** 2 + (5 / 7) ** 3
    assert promised == pytest.approx(tokens / 0.052 * 0.02)
    assert promised_speed(rounds, 4, curve, 0.004) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "/no/such.gguf"], "There is no file /no/such.gguf"),
        (
            ["--workload", "edit,nonsense"],
            "There is no workload 'nonsense'; choose from replayed, ",
        ),
        (["--workload", ""], "--workload has no name"),
        (["--workload", "fix,edit"], "The workload fix needs a chat template, which the model"),
        (["--workload", "answered", "--simulate", CURVES], "Only replayed workloads can be"),
        (["--contestants", "best"], "There is no contestant 'best'; choose from plain, ngram, "),
        (["--contestants", "cascade"], "The contestant cascade needs a draft model (-md)."),
        (["--replay", "/no/such.jsonl"], "/no/such.jsonl cannot be read"),
        (["--simulate", "c.json", "-md", "d.gguf"], "leave out --draft-model"),
        (["--simulate", "/no/such.json"], "/no/such.json cannot be read"),
    ],
)
def test_bad_bench_input_gives_one_sentence(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    assert main(["bench", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_generated_workloads_cannot_be_simulated(tmp_path: Path, capsys: Captured) -> None:
    curves = tmp_path / "curves.json"
    curves.write_text('{"flat": {"1": 1}}')
    assert main(["bench", "--workload", "free", "--simulate", str(curves)]) == 2
    assert "Only replayed workloads can be simulated; " in capsys.readouterr().err
