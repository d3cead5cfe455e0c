"""`specllama divergence`: no difference in the exact configuration, and the sums of its report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from session_options import EXACT_HERE
from specllama import ArgumentError, workloads
from specllama.__main__ import main
from specllama.measure.divergence import Comparison, compare, summarise, text

SMALL = ["divergence", "-t", "1", "-ngl", "0", "--count", "3", "-n", "16"]


x86 = pytest.mark.skipif(EXACT_HERE is not True, reason="exactness is claimed for x86-64 only")


@x86
def test_exact_sessions_do_not_diverge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--exact", "on"]) == 0
    out = capsys.readouterr().out
    assert "0 of 3 generations differ from plain decoding (48 tokens; 3 in the exact" in out
    assert "gap" not in out


@x86
@pytest.mark.parametrize(
    "options",
    [["-kv", "q8_0"], ["--exact", "on", "--temp", "1"], ["--exact", "on", "-md", "ngram"]],
)
def test_divergence_json_has_every_comparison(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert main([*SMALL, "--json", *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["count"] == len(result["comparisons"]) == 3
    assert result["exact"] == 3
    assert result["differ"] == 0
    assert result["first"] == []
    assert result["gap_median"] is None


def test_divergence_of_inexact_sessions_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The command succeeds all the same."""
    assert main([*SMALL, "--exact", "off", "-kv", "f16"]) == 0
    assert "0 in the exact configuration" in capsys.readouterr().out


@x86
def test_divergence_of_several_requests_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """No text of an exact session differs; texts in a shared memory may."""
    assert main([*SMALL, "--n-seq", "2", "--exact", "on"]) == 0
    out = capsys.readouterr().out
    assert "temperature 0, 2 requests at once" in out
    assert "0 of 3 generations differ from plain decoding (48 tokens; 3 in the exact" in out
    assert main([*SMALL, "--n-seq", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_seq"], result["count"], result["exact"]) == (3, 3, 0)
    assert result["n_tokens"] == 48


def test_divergence_reads_prompts_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "def f(x):"}\n\n{"prompt": "import os\\n", "more": 1}\n', "utf-8")
    assert workloads.read_prompts(path) == ["def f(x):", "import os\n"]
    assert main([*SMALL, "-f", str(path), "--count", "2"]) == 0
    capsys.readouterr()
    assert main([*SMALL, "-f", str(path)]) == 2
    assert "each of the 2 prompts gives only one text" in capsys.readouterr().err
    assert main([*SMALL, "-f", str(path), "--temp", "0.7"]) == 0  # prompts repeat, with other seeds
    path.write_text('{"text": ""}', "utf-8")
    assert main([*SMALL, "-f", str(path)]) == 2
    assert 'line 1 has no "prompt".' in capsys.readouterr().err


def test_packaged_prompts_come_from_the_workloads() -> None:
    some = workloads.packaged_prompts(workloads.HELD_OUT)
    assert len(some) == sum(len(workloads.load(name)) for name in workloads.HELD_OUT)
    assert {workloads.load(name)[0].prompt for name in workloads.HELD_OUT} == set(some[:4])
    longer = workloads.longer_prompts(["code"])
    assert len(longer) == 2 * len(workloads.load("code"))
    assert longer[len(longer) // 2].startswith(longer[0])
    assert len(workloads.longer_prompts(workloads.REPLAYED)) >= 100
    with pytest.raises(ArgumentError, match="no replayed workload"):
        workloads.packaged_prompts(["none"])


def generation(tokens: list[int], *, exact: bool = True, top: Any = None) -> Any:
    """A generation with only the fields that are read; `top` maps tokens to log-probabilities."""
    stats = SimpleNamespace(exact=exact, acceptance_rate=0.5)
    logprobs = [
        SimpleNamespace(logprob=(top or {}).get(token, -9.0), top=list((top or {}).items()))
        for token in tokens
    ]
    return SimpleNamespace(tokens=tokens, stats=stats, logprobs=logprobs)


def test_divergence_finds_the_first_difference_and_its_gap() -> None:
    top = {3: -0.5, 4: -0.75}
    same = compare(generation([1, 2, 3]), generation([1, 2, 3]))
    assert same == Comparison(None, None, True, 3, 0.5)
    tipped = compare(generation([1, 2, 3], top=top), generation([1, 2, 4], exact=False))
    assert tipped == Comparison(2, 0.25, False, 3, 0.5)
    unlikely = compare(generation([1, 2, 3], top=top), generation([1, 2, 9]))
    assert (unlikely.first, unlikely.gap) == (2, None)
    ended = compare(generation([1, 2, 3], top=top), generation([1, 2]))
    assert (ended.first, ended.gap) == (2, None)


def test_the_divergence_report_summarises_comparisons() -> None:
    found = [
        Comparison(None, None, True, 100, 0.5),
        Comparison(10, 0.25, False, 100, 0.5),
        Comparison(20, 1.0, False, 100, 0.5),
        Comparison(60, None, False, 50, 0.5),
    ]
    report = summarise(found)
    assert (report.count, report.exact, report.differ, report.n_tokens) == (4, 1, 3, 350)
    assert report.first == [15.0, 20.0, 40.0]
    assert (report.gap_median, report.gap_largest, report.unknown_gaps) == (0.625, 1.0, 1)
    assert text(report).splitlines() == [
        "3 of 4 generations differ from plain decoding (350 tokens; 1 in the exact configuration)",
        "first different token: quartiles 15, 20, 40",
        "gap between the two candidates there: median 0.62, largest 1 nats",
        "gap unknown for 1: one ended, or a candidate is not among the 100 likeliest",
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-n", "4000"], "leaves no room in a context of"),
        (["--temp", "-1"], "--temp must be"),
        (["-f", "none.jsonl"], "none.jsonl cannot be read"),
        (["--exact", "on", "-kv", "f16"], "Exact decoding is not possible"),
    ],
)
def test_bad_divergence_options_give_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert main([*SMALL, *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
