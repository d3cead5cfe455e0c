"""`specllama bench --html`: the page and its plots."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from specllama.__main__ import main
from specllama.bench import page, plot
from specllama.bench.contestants import Who
from specllama.bench.mean import mean_of
from specllama.bench.measuring import Result, Score
from specllama.session import BUNDLED_DRAFT

SVG = "{http://www.w3.org/2000/svg}"
SMALL = ["bench", "-n", "8", "--texts", "1", "--repeat", "1", "-t", "1", "-ngl", "0"]


def score(contestant: str, ratio: float, drafted: float, promised: float | None = None) -> Score:
    who, _, length = contestant.partition("-")
    return Score(
        contestant=contestant,
        drafter=None if who == "plain" else cast(Who, who),
        spec_length=int(length) if length else None,
        tokens_per_second=50 * ratio,
        ratio=ratio,
        low=0.9 * ratio,
        high=1.1 * ratio,
        first_token_ratio=2 * ratio,
        acceptance_rate=0.5,
        drafted_per_round=drafted,
        tokens_per_round=1.5,
        bound_share=None,
        promised=promised,
        first_difference=None,
    )


def result(*scores: Score, workload: str = "edit") -> Result:
    plain = score("plain", 1.0, 0.0)
    return Result(workload, "replayed", 1, 100, 0.02, [plain, *scores], "ngram-4")


def picture(one: Result) -> ElementTree.Element:
    return ElementTree.fromstring(
        plot.speeds(one).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    )


def markers(svg: ElementTree.Element) -> dict[str, tuple[str, float, float]]:
    """Return the kind (planned or fixed) and the position of each contestant's marker."""
    found = {}
    for group in svg.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is not None:
            assert title.text is not None
            marker = group.find(f"{SVG}g")
            assert marker is not None
            place = re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", marker.attrib["transform"])
            assert place is not None
            name = title.text.partition(":")[0]
            found[name] = (marker.attrib["class"], float(place[1]), float(place[2]))
    return found


def test_bench_plot_places_each_contestant_by_its_scores() -> None:
    scores = [
        score("ngram", 3.0, 30.0),
        score("model", 1.4, 0.0, promised=1.5),
        *(score(f"ngram-{n}", ratio, n) for n, ratio in ((1, 1.5), (4, 2.5), (16, 2.0))),
        *(score(f"model-{n}", ratio, n, promised=ratio) for n, ratio in ((1, 1.3), (4, 0.8))),
    ]
    svg = picture(result(*scores))
    places = markers(svg)
    assert {*places} == {one.contestant for one in scores}
    for one in scores:
        kind, x, y = places[one.contestant]
        assert kind == ("fixed" if "-" in one.contestant else "planned")
        for other in scores:
            _, other_x, other_y = places[other.contestant]
            # To the right is more drafted, and up is faster.
            assert (x < other_x) == (one.drafted_per_round < other.drafted_per_round)
            assert (y > other_y) == (one.ratio < other.ratio)
    lines = [path for path in svg.iter(f"{SVG}path") if "line" in path.get("class", "").split()]
    dashes = {path.attrib["class"]: path.attrib["stroke-dasharray"] for path in lines}
    assert len(set(dashes.values())) == len(dashes) == 3
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert "model, Theorem 3.8" in texts
    assert "cascade, planned" not in texts


def test_bench_plot_of_plain_decoding_alone_has_no_markers() -> None:
    svg = picture(result())
    assert not markers(svg)
    assert "plain decoding" in [text.text for text in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize("ratio", [0.01, 1.0, 9.0, 3000.0])
def test_bench_plot_contains_markers_of_any_speed(ratio: float) -> None:
    svg = picture(result(score("ngram", ratio, 64.0)))
    _, width, height = (float(number) for number in svg.attrib["viewBox"].split()[1:])
    _, x, y = markers(svg)["ngram"]
    assert 0 < x < width
    assert 0 < y < height
    ticks = [
        text.text for text in svg.iter(f"{SVG}text") if re.match(r"[\d.e+]+x$", text.text or "")
    ]
    assert 4 <= len(ticks) <= 9


def test_bench_page_has_geometric_means_of_several_workloads() -> None:
    """A single workload has no mean."""
    results = [result(score("ngram-4", ratio, 3.0)) for ratio in (1.0, 2.0, 4.0)]
    mean = mean_of(results)
    assert (mean.workload, mean.n_workloads) == ("mean", 3)
    assert [one.contestant for one in mean.scores] == ["plain", "ngram-4"]
    assert [one.ratio for one in mean.scores] == pytest.approx([1, 2])
    assert [one.first_token_ratio for one in mean.scores] == pytest.approx([2, 4])
    text = page.document([], results)
    assert "geometric mean of 3 workloads" in text
    assert "<td>ngram-4</td><td>2.00x</td><td>4.00x</td>" in text
    assert "geometric mean" not in page.document([], results[:1])


def test_bench_page_escapes_names() -> None:
    text = page.document(["<model> & co"], [result(workload="<b>")])
    assert "&lt;model&gt; &amp; co" in text
    assert "&lt;b&gt; (replayed)" in text
    assert "<b>" not in text


def test_bench_page_has_a_table_and_a_plot_for_each_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.html"
    options = ["-md", str(BUNDLED_DRAFT), "--workload", "edit,copy", "--html", str(path)]
    assert main([*SMALL, *options, "--contestants", "ngram,model-4", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    text = path.read_text(encoding="utf-8")
    *lines, mean = lines
    assert [one["workload"] for one in lines] == ["edit", "copy"]
    assert text.count("<table>") == text.count("<svg ") + 1 == 3
    for one in mean["scores"]:
        assert f"<td>{one['contestant']}</td><td>{one['ratio']:.2f}x</td>" in text
    assert not re.search(r"https?://|src=|href=|@import|url\(", text)
    for line in lines:
        for one in line["scores"]:
            assert f"<td>{one['contestant']}</td><td>{one['tokens_per_second']:.1f}</td>" in text
    assert "bundled" not in text
    assert BUNDLED_DRAFT.name in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/no/such/folder/bench.html", "cannot be written: No such file or directory."),
        ("/", "/ cannot be written: Is a directory."),
        ("\0", "cannot be written: it is not a path."),
    ],
)
def test_an_unwritable_bench_page_is_refused_before_anything_is_measured(
    path: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--html", path]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


def test_bench_html_is_refused_for_simulations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: list[Any] = ["--simulate", "curves.json", "--html", str(tmp_path / "bench.html")]
    assert main(["bench", *options]) == 2
    assert "--html shows measurements" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
