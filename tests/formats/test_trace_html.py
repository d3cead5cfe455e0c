"""Traces as text, HTML and JSON, and the command `specllama trace`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from drafters import CtrlC
from prompts import PROMPTS
from scripted_model import BOS
from specllama import Drafter, Generation, SpecSession, Stream, Trace
from specllama.__main__ import main
from specllama.commands import _arguments
from specllama.commands import trace as command
from specllama.session import BUNDLED_DRAFT

Open = Callable[..., SpecSession]
Script = Callable[..., Path]
PROMPT = PROMPTS["module"]


class Page(HTMLParser):
    """Reads a page: checks that every element is closed, and collects its marked texts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.marked: list[tuple[str, str, str]] = []  # mark, text, tooltip
        self.names: set[str] = set()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.names |= {tag, *values}
        if tag == "meta":
            return
        mark = values.get("class") or tag
        self.open.append((tag, mark))
        title = values.get("title")
        if title is not None:
            self.marked.append((mark, "", title))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = [mark for _, mark in self.open]
        if "text" in inside and self.marked:
            mark, text, title = self.marked[-1]
            self.marked[-1] = (mark, text + data, title)

    def text(self) -> str:
        """Return the text that is not struck out, without the prompt and what was cut off."""
        return "".join(t for mark, t, _ in self.marked if mark not in ("del", "prompt", "cut"))


class Guess(Drafter):
    """Drafts the same tokens every round."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[int]:
        return self.tokens[:max_tokens]


def traced(
    session: SpecSession, prompt: str | list[int] = PROMPT, **options: Any
) -> tuple[Trace, str]:
    generation = session.generate(prompt, trace=True, **options)
    assert generation.trace is not None
    return generation.trace, generation.text


@pytest.mark.parametrize("options", [{"draft": "ngram"}, {"draft": BUNDLED_DRAFT}, {"draft": None}])
def test_trace_page_marks_every_token_by_its_source(
    open_session: Open, options: dict[str, Any]
) -> None:
    trace, text = traced(open_session(**options), max_tokens=100)
    page = Page(trace.to_html())
    assert page.text() == text
    # The counts, computed again from the rounds.
    expected: list[str] = []
    for one in trace.rounds:
        expected += [d.drafter for d in one.draft[: one.accepted]]
        expected += ["del"] * (len(one.draft) - one.accepted)
        if not one.draft:
            expected.append("plain")
        else:
            expected.append("bonus" if one.accepted == len(one.draft) else "strong")
    marks = [mark for mark, _, _ in page.marked]
    assert marks[0] == "prompt"
    assert marks[1:] == expected
    assert "round 1: " in page.marked[1][2]
    assert f"round {len(trace.rounds)}: " in page.marked[-1][2]
    if options["draft"] is None:
        assert set(marks[1:]) == {"plain"}
    else:
        assert {"del", "strong"} <= set(marks)
        assert set(marks) & {"match", "ngram", "model"}


def test_trace_page_loads_nothing_from_outside(open_session: Open) -> None:
    trace, _ = traced(open_session(), max_tokens=40)
    html = trace.to_html()
    for outside in ("http", "src=", "href=", "url(", "@import", "<script", "<link"):
        assert outside not in html
    assert html.startswith("<!DOCTYPE html>")
    fragment = trace._repr_html_()
    assert fragment in html
    assert "<body" not in fragment
    # The style applies only to the trace in a notebook; every mark has an underline or a weight.
    style = re.sub(r"@media[^{]*\{", "", re.findall(r"<style>(.*?)</style>", fragment, re.S)[0])
    for selector in re.findall(r"([^{}]+)\{", style):
        assert all(part.strip().startswith(".specllama-trace") for part in selector.split(","))
    for drafter in ("match", "corpus", "history", "ngram", "grammar", "model", "other"):
        assert re.search(rf"\.{drafter} \{{[^}}]*underline", style)


def test_the_trace_strip_has_every_token(open_session: Open) -> None:
    trace, _ = traced(open_session(), max_tokens=60)
    expected: Counter[str] = Counter()
    for i in range(len(trace.rounds)):
        for token in trace.tokens(i):
            own = token.kind in ("plain", "bonus", "replacement")
            expected["own" if own else token.name] += 1
    drawn = re.findall(r'<path class="(\w+)" d="([^"]*)"', trace.to_html())
    assert {name: d.count("z") for name, d in drawn} == expected
    assert {"own", "rejected"} < set(expected)


def test_trace_page_escapes_markup_and_control_characters(
    scripted: Script, open_session: Open
) -> None:
    pieces = ["<script>", "alert('&amp;\")", "\n", "\t", "</span>", "\x01", "é", b"\xc3", b"\xa9"]
    trace, text = traced(open_session(scripted(pieces)), [BOS], max_tokens=20)
    assert text == "<script>alert('&amp;\")\n\t</span>\x01éé"
    html = trace.to_html()
    assert "<script" not in html
    assert "\x01" not in html
    # Half a character is shown as U+FFFD. The end token is cut off.
    page = Page(html)
    assert page.text() == text[:-1].replace("\x01", "\u2401") + "\ufffd\ufffd"
    assert page.marked[-1][:2] == ("cut", "</s>")


def test_trace_page_escapes_the_prompt(open_session: Open) -> None:
    prompt = "</div><script>alert(\"1\")</script> & 'x' &lt;\n"
    trace, text = traced(open_session(), prompt, max_tokens=20)
    page = Page(trace.to_html())
    assert page.marked[0][:2] == ("prompt", prompt)
    assert "script" not in page.names
    assert page.text() == text


def test_trace_page_keeps_leading_spaces(scripted: Script, open_session: Open) -> None:
    session = open_session(scripted(["a", "\u2581b", "\u2581\u2581c"]), draft=None)
    trace, text = traced(session, "a", max_tokens=10)
    assert text == " b  c"
    assert Page(trace.to_html()).text() == text


def test_tokens_after_a_stop_string_are_marked_as_cut(open_session: Open) -> None:
    session = open_session()
    whole = session.generate(PROMPT, max_tokens=60)
    stop = session.detokenize(whole.tokens[40:44])
    generation = session.generate(PROMPT, max_tokens=60, stop=stop, trace=True)
    assert generation.trace is not None
    tokens = [t for i in range(len(generation.trace.rounds)) for t in generation.trace.tokens(i)]
    kept = [t.token for t in tokens if t.kind not in ("rejected", "cut")]
    assert kept == generation.tokens
    assert any(t.kind == "cut" for t in tokens)
    assert generation.text.startswith(Page(generation.trace.to_html()).text())


def test_accepted_drafts_after_a_stop_string_are_marked_as_cut(open_session: Open) -> None:
    session = open_session(spec_length=16)
    whole = session.generate(PROMPT, max_tokens=60)
    stop = session.detokenize(whole.tokens[40:42])
    options: dict[str, Any] = {"max_tokens": 60, "stop": stop, "reference": whole.text}
    generation = session.generate(PROMPT, trace=True, **options)
    assert generation.trace is not None
    tokens = list(generation.trace.tokens(len(generation.trace.rounds) - 1))
    assert any(t.kind == "cut" and t.drafted is not None for t in tokens)
    kept = [t.token for t in tokens if t.kind not in ("rejected", "cut")]
    assert kept == generation.tokens[generation.trace.rounds[-1].position :]


def test_a_trace_survives_an_abandoned_stream_and_a_closed_session(open_session: Open) -> None:
    session = open_session()
    stream = session.stream(PROMPT, max_tokens=30, trace=True)
    for _ in range(3):
        next(stream)
    stream.close()
    session.close()
    generation = stream.result()
    assert generation.trace is not None
    assert generation.text
    assert generation.text.startswith(Page(generation.trace.to_html()).text())


def test_a_trace_prints_one_line_for_each_round(open_session: Open) -> None:
    session = open_session(draft=Guess([5, 6]))
    trace, text = traced(session, max_tokens=12)
    lines = str(trace).splitlines()
    stats = trace.stats
    drafted, accepted = stats.by_drafter["other"]
    assert lines[0].startswith(f"12 tokens in {stats.rounds} rounds, ")
    assert lines[1] == f"accepted: other {accepted} of {drafted} ({accepted / drafted:.0%})"
    assert len(lines) == 3 + len(trace.rounds)
    for number, line in enumerate(lines[3:], 1):
        assert re.match(rf" *{number} +\d+\.\d\d ms  (other|rejected|bonus|plain) ", line)
    assert "rejected" in str(trace)
    assert "replacement" in str(trace)
    said = re.findall(r"(?:other|bonus|plain|replacement) ('[^']*'|\"[^\"]*\")", str(trace))
    assert "".join(literal_eval(literal) for literal in said) == text


def test_trace_to_dict_has_every_token_of_the_text(open_session: Open) -> None:
    trace, text = traced(open_session(spec_length="auto"), max_tokens=40)
    again = json.loads(json.dumps(trace.to_dict()))
    tokens = [token for one in again["rounds"] for token in one["tokens"]]
    assert "".join(t["text"] for t in tokens if t["kind"] != "rejected") == text
    assert PROMPT.endswith(again["prompt"].removeprefix("…"))
    assert all(one["expected_tokens"] > 0 for one in again["rounds"])


def test_a_trace_survives_the_closed_session(open_session: Open) -> None:
    session = open_session()
    stream = session.stream(PROMPT, max_tokens=30, trace=True)
    for _ in stream:
        pass
    session.close()
    for generation in (stream.result(), session.last):
        assert generation is not None
        assert generation.trace is not None
        assert Page(generation.trace.to_html()).text() == generation.text


def test_trace_command_writes_text_json_and_html(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = tmp_path / "prompt.py"
    prompt.write_text(PROMPT)
    page = tmp_path / "out.html"
    arguments = ["trace", "-f", str(prompt), "-n", "20", "-t", "1", "--spec-length", "4"]
    assert main([*arguments, "-o", str(page)]) == 0
    assert capsys.readouterr().out == ""
    html = page.read_text(encoding="utf-8")
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith("20 tokens in ")
    assert main([*arguments[:4], "-1", "-c", "400", *arguments[5:]]) == 0
    assert int(capsys.readouterr().out.split()[0]) > 20
    with prompt.open("rb") as stdin:
        arguments[2] = "-"  # standard input
        command = [sys.executable, "-m", "specllama", *arguments]
        assert subprocess.run(command, stdin=stdin, capture_output=True, check=True).stdout
    with SpecSession(n_threads=1, spec_length=4) as session:
        assert Page(html).text() == session.generate(PROMPT.rstrip("\n"), max_tokens=20).text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-p", ""], 2, "The prompt is empty"),
        (["-p", "x", "--temp", "-1"], 2, "--temp must be"),
        (["-f", "no/such/file"], 2, "no/such/file cannot be read: No such file"),
        (["-f", "."], 2, "cannot be read: Is a directory"),
        (["-f", sys.executable], 2, "cannot be read: it is not UTF-8"),
        (["-p", "x", "-o", "no/such/file"], 1, "no/such/file cannot be written: No such file"),
    ],
)
def test_trace_command_refuses_bad_input_with_one_sentence(
    capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["trace", "-t", "1", *arguments]) == code
    out, err = capfd.readouterr()
    said = [line for line in err.splitlines() if line.startswith("specllama: ")]
    assert len(said) == 1
    assert message in said[0]
    assert out == ""  # nothing was generated


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_trace_command_prints_a_result_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["-t", "1", "-p", "def f(", "-n", "3"]
    assert main(["trace", *options]) == 0
    shown = capsys.readouterr().out
    assert main(["trace", *options, "-o", "/dev/full"]) == 1
    said = capsys.readouterr()
    first = [text.splitlines()[3].partition("ms")[2] for text in (said.out, shown)]
    assert first[0] == first[1] != ""
    assert "3 tokens in" in said.out
    assert "/dev/full cannot be written: No space left" in said.err


@pytest.mark.parametrize("when", ["generating", "showing"])
def test_an_interrupted_trace_command_writes_the_text_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    page = tmp_path / "out.html"
    draw = Trace.to_html

    def interrupted(trace: Trace, about: str) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return draw(trace, about)

    if when == "showing":
        monkeypatch.setattr(Trace, "to_html", interrupted)
    else:
        monkeypatch.setattr(command, "SpecSession", partial(SpecSession, draft=CtrlC(5)))
        monkeypatch.setattr(_arguments, "session_options", lambda _: {"n_threads": 1})
    assert main(["trace", "-p", PROMPT, "-t", "1", "-n", "60", "-o", str(page)]) == 130
    with SpecSession(n_threads=1, spec_length=4) as session:
        expected = session.generate(PROMPT, max_tokens=60).text
    text = Page(page.read_text(encoding="utf-8")).text()
    assert text
    assert expected.startswith(text)
    assert (text == expected) == (when == "showing")


def test_a_second_ctrl_c_ends_the_trace_command_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waiting(trace: Trace, about: str) -> str:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        return ""

    monkeypatch.setattr(Trace, "to_html", waiting)
    page = tmp_path / "out.html"
    assert main(["trace", "-p", "x", "-t", "1", "-n", "2", "-o", str(page)]) == 130
    assert not page.exists()


def test_a_trace_command_interrupted_before_the_first_token_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Stream.run

    def interrupted(stream: Stream) -> Generation:
        os.kill(os.getpid(), signal.SIGINT)
        return run(stream)

    monkeypatch.setattr(Stream, "run", interrupted)
    page = tmp_path / "out.html"
    assert main(["trace", "-p", "x", "-t", "1", "-o", str(page)]) == 130
    assert not page.exists()


def test_trace_pages_have_a_heading_and_explain_only_what_occurs(open_session: Open) -> None:
    trace = open_session(draft=None).generate(PROMPT, max_tokens=5, trace=True).trace
    assert trace is not None
    page = trace.to_html("a model, <today>")
    assert 'name="viewport"' in page
    assert "<h1>Trace of a generation</h1><p>a model, &lt;today&gt;</p>" in page
    (legend,) = re.findall('<p class="legend">(.*)</p>', page)
    assert legend == "<span>the model's own</span>"
