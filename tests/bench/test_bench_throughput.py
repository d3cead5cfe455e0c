"""`specllama bench --concurrency`: its output, and the arithmetic of its figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from specllama import ArgumentError
from specllama.__main__ import main
from specllama.bench.servers import Answer, Serve, Server
from specllama.bench.throughput import measure, mixed
from specllama.bench.workload import Task, Workload, choose
from specllama.session import BUNDLED_DRAFT

SMALL = ["bench", "-n", "8", "--repeat", "2", "-t", "1", "-ngl", "0", "-c", "768"]

Captured = pytest.CaptureFixture[str]


def result_of(arguments: list[str], capsys: Captured) -> dict[str, Any]:
    assert main([*SMALL, *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_throughput_table_has_a_section_for_each_concurrency(capsys: Captured) -> None:
    assert main([*SMALL, "--concurrency", "2", "3", "--workload", "code,copy,prose"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "up to 8 tokens an answer" in lines[0]
    assert lines[1].startswith("6 requests, ")
    assert " 48 generated" in lines[1]
    at = [lines.index(f"{n} at once") for n in (1, 2, 3)]
    for begin, end in zip(at, [*at[1:], len(lines)], strict=True):
        assert [line.split()[0] for line in lines[begin + 1 : end]] == ["plain", "ngram"]
    assert lines[at[0] + 1].endswith("6 of 6")


def test_throughput_json_has_scores_for_each_contestant_and_concurrency(capsys: Captured) -> None:
    options = ["-md", str(BUNDLED_DRAFT), "--workload", "prose", "--texts", "4"]
    result = result_of(["--concurrency", "2", *options], capsys)
    assert (result["n_requests"], result["n_tokens"], result["comparisons"]) == (4, 32, [])
    assert [(one["contestant"], one["n_at_once"]) for one in result["scores"]] == [
        (name, n) for n in (1, 2) for name in ("plain", "ngram", "cascade")
    ]
    plain = result["scores"][0]
    assert plain["ratio"] == plain["low"] == plain["high"] == plain["tokens_per_round"] == 1
    for score in result["scores"]:
        assert len(score["speeds"]) == 2
        assert score["low"] <= score["ratio"] <= score["high"]
        ratios = [a / b for a, b in zip(score["speeds"], plain["speeds"], strict=True)]
        assert score["ratio"] == pytest.approx(sum(ratios) / 2)
        assert 0 <= score["n_equal"] <= 4
        assert 0 <= score["acceptance_rate"] <= 1


def test_throughput_measures_only_the_named_contestants(capsys: Captured) -> None:
    options = ["--concurrency", "2", "--workload", "code,prose", "--contestants", "ngram-2"]
    scores = result_of(options, capsys)["scores"]
    assert [one["contestant"] for one in scores] == ["plain", "ngram-2"] * 2


@pytest.mark.skipif(shutil.which("llama-server") is None, reason="no llama-server on the PATH")
def test_throughput_compares_with_llama_server(capsys: Captured) -> None:
    options = ["--concurrency", "2", "--workload", "code,prose"]
    options += ["--llama-server", str(shutil.which("llama-server"))]
    options += ["--contestants", "ngram,server,server-ngram-simple-4"]
    result = result_of(options, capsys)
    names = [one["contestant"] for one in result["scores"]]
    assert names == ["plain", "ngram", "plain", "ngram", "server", "server-ngram-simple-4"]
    assert result["scores"][4]["tokens_per_round"] == 1
    assert [one["contestant"] for one in result["comparisons"]] == ["plain", "ngram"]
    assert all(one["best"].startswith("server") for one in result["comparisons"])


def test_throughput_requests_are_distinct_and_alternate_between_workloads() -> None:
    def workload(name: str, *prompts: str) -> Workload:
        return Workload(name, "generated", [Task(prompt) for prompt in prompts])

    workloads = [workload("a", "1", "2", "3"), workload("b", "4", "2"), workload("c", "1")]

    def tokens(task: Task) -> list[int]:
        return [ord(sign) for sign in str(task.prompt)]

    assert mixed(workloads, 4, tokens) == [[ord(prompt)] for prompt in ("1", "4", "2", "3")]
    with pytest.raises(ArgumentError, match="There are only 4 texts for 5 requests"):
        mixed(workloads, 5, tokens)
    assert len(mixed(choose("replayed,generated", None, 3), 16, tokens)) == 16


def test_throughput_requests_are_rendered_by_the_template(smollm2: Path, capsys: Captured) -> None:
    """Each request is another conversation."""
    options = ["-m", str(smollm2), "--workload", "questions", "--half", "held-out"]
    options += ["--concurrency", "2", "--contestants", "plain", "--texts", "4", "-c", "256"]
    assert main(["bench", "-n", "8", "--repeat", "1", "-t", "1", "-ngl", "0", *options]) == 2
    assert "There are only 3 texts for 4 requests" in capsys.readouterr().err
    options[3:6] = ["questions"]
    assert main(["bench", "-n", "8", "--repeat", "1", "-t", "1", "-ngl", "0", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("4 requests, ")
    assert " 32 generated" in lines[1]


def server(name: str, n_at_once: int, answers: Sequence[Answer], opened: list[str]) -> Server:
    """Return a server whose answers are always the same."""

    @contextmanager
    def open_() -> Iterator[Serve]:
        opened.append(name)
        yield lambda prompts, n_tokens: [*answers[: len(prompts)]]

    return Server(name, n_at_once, open_)


def test_throughput_scores_match_sums_by_hand() -> None:
    opened: list[str] = []
    plain = [Answer([1, 2, 3], 3, 0, 0), Answer([1, 1, 1], 3, 0, 0)]
    drafted = [Answer([1, 2, 3], 2, 4, 1), Answer([1, 1, 2], 2, 2, 1)]
    servers = [
        server("plain", 1, plain, opened),
        server("plain", 2, plain, opened),
        server("ngram", 2, drafted, opened),
        server("server", 2, plain[:1], opened),
        server("server-lame-4", 2, drafted[:1] * 2, opened),
    ]
    result = measure(servers, [[5, 6], [7]], 3, 2)
    assert opened == [one.name for one in servers] * 2
    assert (result.n_requests, result.n_prompt_tokens, result.n_tokens) == (2, 3, 6)
    alone, together, ngram, *_ = result.scores
    assert (alone.ratio, alone.acceptance_rate, alone.tokens_per_round) == (1, 0, 1)
    assert (together.n_at_once, together.n_equal) == (2, 2)
    assert ngram.acceptance_rate == pytest.approx(2 / 6)
    assert ngram.tokens_per_round == pytest.approx(6 / 4)
    assert ngram.n_equal == 1
    assert [one.contestant for one in result.comparisons] == ["plain", "ngram"]
    best = max(result.scores[3:], key=lambda one: one.ratio)
    assert {one.best for one in result.comparisons} == {best.contestant}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--concurrency", "2", "64"], "texts for 128 requests; raise --texts"),
        (["--concurrency", "2", "--html", "a.html"], "--html and --concurrency exclude"),
        (["--concurrency", "2", "--simulate", "a.json"], "leave out --concurrency"),
        (["--llama-server", "llama-server"], "--llama-server requires --concurrency"),
        (["--concurrency", "2", "--llama-server", "/no/such"], "There is no file /no/such"),
        (["--concurrency", "2", "--contestants", "server"], "needs llama.cpp's llama-server"),
        (["--concurrency", "2", "--contestants", "cascade"], "needs a draft model (-md)"),
    ],
)
def test_bad_throughput_options_give_one_sentence(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    assert main([*SMALL, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_a_peer_program_that_does_not_start_gives_one_sentence(
    tmp_path: Path, capsys: Captured
) -> None:
    program = tmp_path / "llama-server"
    arguments = [*SMALL, "--concurrency", "2", "--workload", "code,prose"]
    arguments += ["--contestants", "server", "--llama-server", str(program)]
    program.write_text("#!/bin/sh\necho no such model >&2; exit 1\n")
    assert main(arguments) == 2
    assert f"Cannot run {program}: Permission denied." in capsys.readouterr().err
    program.chmod(0o755)
    assert main(arguments) == 1
    assert f"{program} does not start; its last message: no such model" in capsys.readouterr().err
