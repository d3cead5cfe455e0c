"""bench_peers.py: a run with the peer that is always installed, and the summary."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from bench_peers import (
    against_best,
    difference,
    main,
    near_best,
    speeds,
    tells_whole,
    whole_speeds,
)
from peers import Run, Setting

Captured = pytest.CaptureFixture[str]


def test_bench_peers_prints_a_table_for_every_contestant(capsys: Captured) -> None:
    main(["-n", "66", "--repeat", "1", "--texts", "1", "-kv", "q8_0"])
    lines = capsys.readouterr().out.splitlines()
    for name in ("specllama plain", "specllama ngram", "llama-cpp-python lookup 10"):
        mine = [line for line in lines if line.strip().startswith(f"{name} ")]
        assert len(mine) == 5  # workloads
        assert not any("differ" in line for line in mine)
    at = next(i for i, line in enumerate(lines) if line.startswith("specllama ngram, times as"))
    assert lines[at].split()[-6:] == ["copy", "free", "code", "edit", "quote", "mean"]
    assert [line.split("  ")[1] for line in lines[at + 1 : at + 4]] == [
        "llama-cpp-python plain",
        "llama-cpp-python lookup",
        "all of them",
    ]


def test_bench_peers_refuses_too_few_tokens(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["-n", "1"])
    assert exit_.value.code == 2
    assert "-n must be at least 2" in capsys.readouterr().err


def test_bench_peers_refuses_a_folder_without_llama_server(
    tmp_path: Path, capsys: Captured
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--llama-cpp", str(tmp_path)])
    assert exit_.value.code == 2
    assert f"{tmp_path} does not contain llama-server" in capsys.readouterr().err


def setting(peer: str, name: str) -> Setting:
    return Setting(peer, name, lambda: nullcontext(lambda prompt, n: Run([], 0, 0.0, 0.0)))


def test_bench_peers_chooses_the_best_setting_by_the_median() -> None:
    def turns(*times: float) -> list[list[Run]]:
        return [
            [Run([1, 2], 10, seconds, 2 * seconds), Run([3], 30, 3 * seconds, 6 * seconds)]
            for seconds in times
        ]

    mine, steady, lucky = (setting("peer", name) for name in ("mine", "steady", "lucky"))
    runs = {mine: turns(1, 1, 1), steady: turns(2, 2, 2), lucky: turns(3, 0.5, 3)}
    assert speeds(runs[lucky]) == pytest.approx([10 / 3, 20, 10 / 3])
    assert against_best(runs, mine, [steady, lucky]) == pytest.approx(2)
    assert against_best(runs, mine, [lucky]) == pytest.approx(3)
    assert whole_speeds(runs[lucky]) == pytest.approx([42 / 24, 42 / 4, 42 / 24])
    assert against_best(runs, mine, [lucky], whole_speeds) == pytest.approx(3)


def test_bench_peers_compares_whole_answers_if_timed() -> None:
    tells, silent = setting("peer", "tells"), setting("peer", "silent")
    runs = {"code": {tells: [[Run([1], 1, 1.0, 2.0)]], silent: [[Run(None, 1, 1.0, None)]]}}
    assert tells_whole(tells, runs)
    assert not tells_whole(silent, runs)


def test_bench_peers_keeps_settings_near_the_best_of_their_peer() -> None:
    times = {
        setting("a", "best"): 1.0,
        setting("a", "near"): 1.05,
        setting("a", "far"): 1.2,
        setting("b", "slow, but its peer's best"): 3.0,
    }
    runs = {one: [[Run([1], 10, seconds, seconds)]] for one, seconds in times.items()}
    assert [one.name for one in near_best(runs, [*times])] == [
        "best",
        "near",
        "slow, but its peer's best",
    ]


def test_bench_peers_names_the_texts_that_differ() -> None:
    plain = [Run([1, 2, 3], 2, 1.0, 1.0), Run([4, 5, 6], 2, 1.0, 1.0)]
    assert difference([Run([1, 2], 1, 1.0, 1.0), Run(None, 2, 1.0, 1.0)], plain) == ""
    assert "differ from 1" in difference([plain[0], Run([4, 9], 1, 1.0, 1.0)], plain)
